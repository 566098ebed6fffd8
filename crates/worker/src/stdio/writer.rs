use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::upstream::OutgoingMessage;

/// Writes queued messages, one per line, until the process stops reading or `closing` fires, then closes stdin.
pub(crate) async fn write(
    stdin: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<OutgoingMessage>,
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
    message: OutgoingMessage,
) -> io::Result<()> {
    if message
        .request
        .is_some_and(|request| !request.write_state.begin_writing())
    {
        return Ok(());
    }
    // Line breaks would end the message, and are only white space between tokens.
    for part in message.text.split(|byte| matches!(byte, b'\n' | b'\r')) {
        stdin.write_all(part).await?;
    }
    stdin.write_all(b"\n").await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::AsyncReadExt;
    use tokio::sync::{mpsc, oneshot};
    use tokio_util::sync::CancellationToken;

    use super::write;
    use crate::upstream::{OutgoingMessage, OutgoingRequest, WriteState};

    #[tokio::test]
    async fn a_message_is_one_line_and_a_withdrawn_one_is_not_written() {
        let (queue, receiver) = mpsc::channel(4);
        let write_states: [Arc<WriteState>; 2] = Default::default();
        assert!(write_states[1].withdraw());
        for (text, write_state) in [
            ("{\"a\":\r\n1}", &write_states[0]),
            ("{\"b\":2}", &write_states[1]),
        ] {
            let request = Some(OutgoingRequest {
                caller: None,
                id: 1,
                params: None,
                write_state: write_state.clone(),
                given_up: oneshot::channel().1,
            });
            let message = OutgoingMessage {
                text: text.as_bytes().into(),
                method: None,
                request,
            };
            assert!(queue.try_send(message).is_ok());
        }
        drop(queue);
        let (mut stdout, stdin) = tokio::io::duplex(100);
        write(stdin, receiver, CancellationToken::new())
            .await
            .unwrap();
        let mut written = String::new();
        stdout.read_to_string(&mut written).await.unwrap();
        assert_eq!(written, "{\"a\":1}\n");
        assert!(write_states[0].is_written() && !write_states[0].withdraw());
        assert!(!write_states[1].is_written());
    }
}
