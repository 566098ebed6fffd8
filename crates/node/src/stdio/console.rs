//! Reads and writes on threads: a read of standard input cannot be cancelled, but its thread does not delay the
//! process's end.

use std::io::{self, Write};
use std::thread::{self, JoinHandle};

use bytes::{Bytes, BytesMut};
use shoal_worker::{Line, Lines};
use tokio::sync::mpsc;
use tokio_util::codec::Decoder as _;

/// Maximum lines in a buffer: enough to keep both sides busy, few enough for backpressure.
const LINES: usize = 256;
const READ_BUFFER: usize = 64 << 10;

pub(super) fn read_lines<R>(input: R, limit: usize) -> mpsc::Receiver<Line>
where
    R: io::Read + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(LINES);
    thread::spawn(move || {
        if let Err(error) = read_to_end(input, limit, &sender) {
            tracing::warn!(%error, "cannot read standard input");
        }
    });
    receiver
}

fn read_to_end(
    mut input: impl io::Read,
    limit: usize,
    lines: &mpsc::Sender<Line>,
) -> io::Result<()> {
    let mut decoder = Lines::of_at_most(limit);
    let (mut text, mut chunk) = (BytesMut::new(), vec![0; READ_BUFFER]);
    loop {
        let read = match input.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        text.extend_from_slice(&chunk[..read]);
        let mut next = || match read {
            0 => decoder.decode_eof(&mut text),
            _ => decoder.decode(&mut text),
        };
        while let Some(line) = next()? {
            let is_empty = matches!(&line, Line::Whole(line) if line.trim_ascii().is_empty());
            if !is_empty && lines.blocking_send(line).is_err() {
                return Ok(());
            }
        }
        if read == 0 {
            return Ok(());
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct ConsoleOutbox(mpsc::Sender<Bytes>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client closed its end")]
pub(super) struct ClosedConsole;

impl ConsoleOutbox {
    pub(super) fn new() -> (Self, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(LINES);
        (Self(sender), receiver)
    }

    /// Waits while the client does not read.
    pub(super) async fn send(&self, message: Bytes) -> Result<(), ClosedConsole> {
        self.0
            .send(on_one_line(message))
            .await
            .map_err(|_| ClosedConsole)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Replaces line breaks by spaces. In JSON, line breaks are white space between tokens.
fn on_one_line(message: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &message).is_none() {
        return message;
    }
    let line = message.iter().map(|byte| match byte {
        b'\n' | b'\r' => b' ',
        other => *other,
    });
    line.collect::<Vec<u8>>().into()
}

/// The thread ends when every [`ConsoleOutbox`] is dropped or the client stops reading.
pub(super) fn write_lines<W>(mut output: W, mut lines: mpsc::Receiver<Bytes>) -> JoinHandle<()>
where
    W: Write + Send + 'static,
{
    thread::spawn(move || {
        while let Some(line) = lines.blocking_recv() {
            let mut written = write_line(&mut output, &line);
            while written.is_ok()
                && let Ok(line) = lines.try_recv()
            {
                written = write_line(&mut output, &line);
            }
            if let Err(error) = written.and_then(|()| output.flush()) {
                tracing::info!(%error, "the client reads no more");
                return;
            }
        }
    })
}

fn write_line(output: &mut impl Write, line: &Bytes) -> io::Result<()> {
    output.write_all(line)?;
    output.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use bytes::Bytes;
    use shoal_protocol::Ends;

    use super::{Line, on_one_line, read_lines};

    fn lines(input: &'static str, limit: usize) -> Vec<Line> {
        let mut lines = read_lines(Cursor::new(input), limit);
        std::iter::from_fn(|| lines.blocking_recv()).collect()
    }

    #[test]
    fn lines_are_cut_and_empty_ones_skipped() {
        let text = |text: &'static str| Line::Whole(Bytes::from_static(text.as_bytes()));
        assert_eq!(
            lines("{}\n\n \r\n[1, 2]\nlast", 64),
            [text("{}"), text("[1, 2]"), text("last")]
        );
        assert_eq!(lines("", 64), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_told() {
        let ok = Line::Whole(Bytes::from_static(b"ok"));
        let long = || Line::TooLong(Ends::of(b"0123456789"));
        assert_eq!(lines("0123456789\nok\n", 8), [long(), ok]);
        assert_eq!(lines("0123456789", 8), [long()]);
    }

    #[test]
    fn a_message_is_one_line() {
        let pretty = Bytes::from_static(b"{\r\n  \"a\": 1\n}");
        assert_eq!(on_one_line(pretty), "{    \"a\": 1 }");
    }
}
