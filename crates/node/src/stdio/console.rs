//! The standard streams: lines in, lines out, each on a thread of its own.
//!
//! A read of standard input cannot be taken back. On a thread that nobody waits for, it does not keep
//! the process from ending.

use std::io::{self, BufRead, Write};
use std::thread::{self, JoinHandle};

use bytes::{Bytes, BytesMut};
use shoal_protocol::Ends;
use tokio::sync::mpsc;

/// Lines on their way in either direction. Enough to keep both sides busy, few enough to hold back
/// whoever is too fast.
const LINES: usize = 256;
/// Bytes read at once.
const READ_BUFFER: usize = 64 << 10;

/// What came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, without its end.
    Text(Bytes),
    /// A line longer than allowed; only its ends were kept.
    TooLong(Ends),
}

/// Reads lines of at most `limit` bytes until the input ends; then the channel closes.
pub(super) fn read_lines<R>(input: R, limit: usize) -> mpsc::Receiver<Line>
where
    R: io::Read + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(LINES);
    thread::spawn(move || {
        let mut input = io::BufReader::with_capacity(READ_BUFFER, input);
        loop {
            match next_line(&mut input, limit) {
                Ok(Some(line)) => {
                    if sender.blocking_send(line).is_err() {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot read standard input");
                    return;
                }
            }
        }
    });
    receiver
}

/// The next line that is not empty; `None` at the end of the input.
fn next_line(input: &mut impl BufRead, limit: usize) -> io::Result<Option<Line>> {
    let mut line = BytesMut::new();
    let mut too_long: Option<Ends> = None;
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = memchr::memchr(b'\n', chunk);
        let piece = &chunk[..end.unwrap_or(chunk.len())];
        if too_long.is_none() && line.len() + piece.len() > limit {
            too_long = Some(Ends::of(&std::mem::take(&mut line)));
        }
        match &mut too_long {
            Some(ends) => ends.pass(piece),
            None => line.extend_from_slice(piece),
        }
        let at_end = chunk.is_empty();
        let used = piece.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_none() && !at_end {
            continue;
        }
        if let Some(ends) = too_long {
            return Ok(Some(Line::TooLong(ends)));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(Line::Text(line.freeze())));
        }
        if at_end {
            return Ok(None);
        }
        line.clear();
    }
}

/// Where messages for the client go; a cheap handle.
#[derive(Clone, Debug)]
pub(super) struct Outbox(mpsc::Sender<Bytes>);

/// The client reads no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client closed its end")]
pub(super) struct Closed;

impl Outbox {
    /// An outbox whose lines somebody else takes, and that end.
    pub(super) fn new() -> (Self, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(LINES);
        (Self(sender), receiver)
    }

    /// Sends one message as one line. Waits while the client does not read.
    pub(super) async fn send(&self, message: Bytes) -> Result<(), Closed> {
        self.0.send(on_one_line(message)).await.map_err(|_| Closed)
    }

    /// Whether the client reads no more.
    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Waits until the client reads no more.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Between the tokens of a JSON text a line break is white space like any other.
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

/// Writes lines until every [`Outbox`] is gone, or the client reads no more.
pub(super) fn write_lines<W>(mut output: W, mut lines: mpsc::Receiver<Bytes>) -> JoinHandle<()>
where
    W: Write + Send + 'static,
{
    thread::spawn(move || {
        while let Some(line) = lines.blocking_recv() {
            let mut written = write_line(&mut output, &line);
            // Whatever waits already goes out together.
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

    use super::{Ends, Line, next_line, on_one_line};

    fn lines(input: &str, limit: usize) -> Vec<Line> {
        let mut input = std::io::BufReader::with_capacity(4, Cursor::new(input.to_owned()));
        std::iter::from_fn(|| next_line(&mut input, limit).unwrap()).collect()
    }

    #[test]
    fn lines_are_cut_and_empty_ones_skipped() {
        let text = |text: &'static str| Line::Text(Bytes::from_static(text.as_bytes()));
        assert_eq!(
            lines("{}\n\n \r\n[1, 2]\nlast", 64),
            [text("{}"), text("[1, 2]"), text("last")]
        );
        assert_eq!(lines("", 64), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_told() {
        let ok = Line::Text(Bytes::from_static(b"ok"));
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
