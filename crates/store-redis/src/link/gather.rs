//! The client library would write each command at once. Waiting until all ready tasks have run saves most system calls
//! under load.

use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt as _};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;

use crate::scripts::Script;

/// Replies to commands that are sent together arrive together.
const MOST: usize = 64;
/// Further commands wait in their callers.
const WAITING: usize = 256;

/// Closes when its last clone is dropped.
#[derive(Clone)]
pub(crate) struct CommandGatherer {
    asking: mpsc::Sender<QueuedCommand>,
}

struct QueuedCommand {
    command: Cmd,
    script: Option<Arc<Script>>,
    reply: oneshot::Sender<RedisResult<Value>>,
}

impl CommandGatherer {
    pub(crate) fn over(connection: MultiplexedConnection) -> Self {
        let (asking, asked) = mpsc::channel(WAITING);
        tokio::spawn(send(connection, asked));
        Self { asking }
    }

    /// The reply may be a server's error. If the future is dropped, the command may have been executed.
    pub(super) async fn ask(
        &self,
        command: Cmd,
        script: Option<Arc<Script>>,
    ) -> RedisResult<Value> {
        let (reply, replied) = oneshot::channel();
        let asked = QueuedCommand {
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

/// Ends, with the connection, when all senders are dropped.
async fn send(connection: MultiplexedConnection, mut asking: mpsc::Receiver<QueuedCommand>) {
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

async fn exchange(mut connection: MultiplexedConnection, together: Vec<QueuedCommand>) {
    let count = together.len();
    let mut pipeline = redis::Pipeline::with_capacity(count);
    let mut waiting = Vec::with_capacity(count);
    for asked in together {
        pipeline.add_command(asked.command);
        waiting.push((asked.script, asked.reply));
    }
    match connection.send_packed_commands(&pipeline, 0, count).await {
        Ok(replies) => {
            let mut in_full = Vec::new();
            let asked = pipeline.cmd_iter().zip(waiting);
            for ((command, (script, waiting)), reply) in asked.zip(replies) {
                match script {
                    Some(script) if is_no_script(&reply) => in_full.push(QueuedCommand {
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
