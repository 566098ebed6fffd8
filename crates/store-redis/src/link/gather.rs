//! Commands that are asked for at the same time travel together.
//!
//! The client library writes to its connection as soon as it is handed a command, one by one, since the
//! task that does so runs next after whoever has asked. So commands are gathered here first, until every
//! task that is ready has had its turn: under load that saves a system call for nearly every command.

use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt as _};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

use crate::scripts::Script;

/// Commands that travel together at most: their replies are told together too.
const MOST: usize = 64;
/// Commands that wait to be gathered; what is above waits in its own tasks.
const WAITING: usize = 256;

/// A connection to one server, for all tasks. It is closed when the last clone is gone.
#[derive(Clone)]
pub(crate) struct Gathering {
    asking: mpsc::Sender<Asked>,
}

struct Asked {
    command: Cmd,
    /// The script that the command runs, if any.
    script: Option<Arc<Script>>,
    reply: oneshot::Sender<RedisResult<Value>>,
}

impl Gathering {
    /// Takes a connection over. Must be called in a runtime.
    pub(crate) fn over(connection: MultiplexedConnection) -> Self {
        let (asking, asked) = mpsc::channel(WAITING);
        tokio::spawn(send(connection, asked));
        Self { asking }
    }

    /// Sends a command and returns its reply, which may be an error of the server's. A script that the server does not know is
    /// sent in full.
    ///
    /// If the future is dropped, the command may have been carried out or not.
    pub(super) async fn ask(
        &self,
        command: Cmd,
        script: Option<Arc<Script>>,
    ) -> RedisResult<Value> {
        let (reply, replied) = oneshot::channel();
        let asked = Asked {
            command,
            script,
            reply,
        };
        self.asking.send(asked).await.map_err(|_| closed())?;
        replied.await.unwrap_or_else(|_| Err(closed()))
    }
}

fn closed() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::BrokenPipe).into()
}

/// Sends what is asked for until nobody can ask any more. Then nobody waits for a reply either, and the
/// connection ends with this task.
async fn send(connection: MultiplexedConnection, mut asking: mpsc::Receiver<Asked>) {
    let mut under_way = FuturesUnordered::new();
    let mut due = Vec::with_capacity(MOST);
    loop {
        tokio::select! {
            more = asking.recv_many(&mut due, MOST) => {
                if more == 0 {
                    return;
                }
                yield_now().await;
                while due.len() < MOST && let Ok(asked) = asking.try_recv() {
                    due.push(asked);
                }
                // A caller that has gone no longer wants its command.
                due.retain(|asked| !asked.reply.is_closed());
                if !due.is_empty() {
                    let together = std::mem::replace(&mut due, Vec::with_capacity(MOST));
                    under_way.push(exchange(connection.clone(), together));
                }
            }
            Some(()) = under_way.next() => {}
        }
    }
}

async fn exchange(mut connection: MultiplexedConnection, together: Vec<Asked>) {
    let count = together.len();
    let mut pipeline = redis::Pipeline::with_capacity(count);
    let mut waiting = Vec::with_capacity(count);
    for asked in together {
        pipeline.add_command(asked.command);
        waiting.push((asked.script, asked.reply));
    }
    // A caller that no longer waits has its answer already.
    match connection.send_packed_commands(&pipeline, 0, count).await {
        Ok(replies) => {
            let mut in_full = Vec::new();
            let asked = pipeline.cmd_iter().zip(waiting);
            for ((command, (script, waiting)), reply) in asked.zip(replies) {
                match script {
                    // After a restart, or on its first use.
                    Some(script) if is_no_script(&reply) => in_full.push(Asked {
                        command: script.in_full(command),
                        script: None,
                        reply: waiting,
                    }),
                    _ => drop(waiting.send(Ok(reply))),
                }
            }
            if !in_full.is_empty() {
                Box::pin(exchange(connection, in_full)).await;
            }
        }
        Err(error) => {
            for (_, waiting) in waiting {
                let _ = waiting.send(Err(error.clone()));
            }
        }
    }
}

fn is_no_script(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::NoScript))
}
