//! The way to a process's stdin: a bounded queue, one line a message.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Messages that may wait for a process that does not read.
pub(super) const QUEUE: usize = 64;

/// A message on its way to a process.
pub(super) struct Outgoing {
    /// One JSON-RPC message.
    pub(super) text: Bytes,
    /// Where the request stands; notifications and answers have none.
    pub(super) stage: Option<Arc<Stage>>,
}

/// Whether a request has reached the process: what decides between "not executed" and "unknown".
#[derive(Default)]
pub(super) struct Stage(AtomicU8);

const QUEUED: u8 = 0;
const WRITTEN: u8 = 1;
const WITHDRAWN: u8 = 2;

impl Stage {
    /// Takes the request back. Returns whether it was still queued: then it will never be written.
    pub(super) fn withdraw(&self) -> bool {
        self.leave_queue(WITHDRAWN)
    }

    /// Whether writing has begun.
    pub(super) fn is_written(&self) -> bool {
        self.0.load(Ordering::Acquire) == WRITTEN
    }

    /// Marks the request as written. Returns `false` if it has been taken back.
    pub(super) fn begin_writing(&self) -> bool {
        self.leave_queue(WRITTEN)
    }

    fn leave_queue(&self, to: u8) -> bool {
        self.0
            .compare_exchange(QUEUED, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// Writes what is queued until the process stops reading, or `closing` fires; then stdin is closed.
pub(super) async fn write(
    stdin: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Outgoing>,
    closing: CancellationToken,
) -> io::Result<()> {
    let writing = async {
        let mut stdin = BufWriter::new(stdin);
        while let Some(message) = queue.recv().await {
            write_one(&mut stdin, message).await?;
            while let Ok(message) = queue.try_recv() {
                write_one(&mut stdin, message).await?;
            }
            stdin.flush().await?;
        }
        Ok(())
    };
    tokio::select! {
        result = writing => result,
        () = closing.cancelled() => Ok(()),
    }
}

async fn write_one(
    stdin: &mut BufWriter<impl AsyncWrite + Unpin>,
    message: Outgoing,
) -> io::Result<()> {
    if message.stage.is_some_and(|stage| !stage.begin_writing()) {
        return Ok(());
    }
    // A line end inside a message can only be white space between tokens; to the process it would
    // end the message.
    for part in message.text.split(|byte| matches!(byte, b'\n' | b'\r')) {
        stdin.write_all(part).await?;
    }
    stdin.write_all(b"\n").await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::AsyncReadExt;
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::{Outgoing, Stage, write};

    #[tokio::test]
    async fn a_message_is_one_line_and_a_withdrawn_one_is_not_written() {
        let (queue, receiver) = mpsc::channel(4);
        let stages: [Arc<Stage>; 2] = Default::default();
        assert!(stages[1].withdraw());
        for (text, stage) in [("{\"a\":\r\n1}", &stages[0]), ("{\"b\":2}", &stages[1])] {
            let text = text.as_bytes().into();
            let stage = Some(stage.clone());
            assert!(queue.try_send(Outgoing { text, stage }).is_ok());
        }
        drop(queue);
        let (mut stdout, stdin) = tokio::io::duplex(100);
        write(stdin, receiver, CancellationToken::new())
            .await
            .unwrap();
        let mut written = String::new();
        stdout.read_to_string(&mut written).await.unwrap();
        assert_eq!(written, "{\"a\":1}\n");
        assert!(stages[0].is_written() && !stages[0].withdraw());
        assert!(!stages[1].is_written());
    }
}
