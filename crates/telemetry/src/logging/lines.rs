//! Log lines on their way to standard error, which somebody may have stopped reading.
//!
//! Whoever logs must never wait for that: a full pipe would stop every thread of the process, one after the other. So
//! a thread of its own writes, from a queue that is bounded in bytes; what finds it full is dropped and counted.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::fmt::MakeWriter;

use crate::metrics::metrics;

/// Bytes that may wait: thousands of lines.
const QUEUE_BYTES: usize = 1 << 20;
/// Where the line comes from that says how many were dropped.
const TARGET: &str = "shoal_telemetry::lines";

/// The lines of this process that have not been written yet.
static PROCESS: OnceLock<Lines> = OnceLock::new();

/// Lines on their way; a cheap handle.
#[derive(Clone, Debug)]
pub(super) struct Lines(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    limit: usize,
    state: Mutex<State>,
    /// Something has come, or has been written.
    news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    dropped: u64,
    is_writing: bool,
}

/// Writes one line.
#[derive(Debug)]
pub(super) struct LineWriter<'a>(&'a Queue);

/// Waits until the lines logged so far are written, for `within` at most: for a process that ends in a way of its own.
pub fn flush(within: Duration) {
    if let Some(lines) = PROCESS.get() {
        lines.flush(within);
    }
}

impl Lines {
    /// Lines to this process's standard error.
    ///
    /// # Errors
    /// There is no standard error, or no thread for it.
    pub(super) fn to_stderr() -> io::Result<Self> {
        let lines = Self::start(stderr()?, QUEUE_BYTES)?;
        Ok(PROCESS.get_or_init(|| lines).clone())
    }

    fn start(output: impl Write + Send + 'static, limit: usize) -> io::Result<Self> {
        let queue = Arc::new(Queue {
            limit,
            state: Mutex::default(),
            news: Condvar::new(),
        });
        let lines = Self(queue.clone());
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || queue.write_to(output))?;
        Ok(lines)
    }

    fn flush(&self, within: Duration) {
        let deadline = Instant::now() + within;
        let mut state = self.0.state.lock();
        while state.is_writing || !state.waiting.is_empty() || state.dropped > 0 {
            if self.0.news.wait_until(&mut state, deadline).timed_out() {
                return;
            }
        }
    }
}

impl Queue {
    fn push(&self, line: &[u8]) {
        let mut state = self.state.lock();
        if state.bytes + line.len() > self.limit {
            state.dropped += 1;
            drop(state);
            return metrics().telemetry.line_dropped();
        }
        state.bytes += line.len();
        state.waiting.push_back(line.to_vec());
        drop(state);
        self.news.notify_all();
    }

    fn write_to(&self, mut output: impl Write) {
        loop {
            let line = {
                let mut state = self.state.lock();
                loop {
                    if let Some(line) = state.waiting.pop_front() {
                        state.is_writing = true;
                        break line;
                    }
                    self.news.wait(&mut state);
                }
            };
            // Who closed standard error wants no lines.
            let _ = output.write_all(&line);
            let dropped = {
                let mut state = self.state.lock();
                state.bytes -= line.len();
                std::mem::take(&mut state.dropped)
            };
            if dropped > 0 {
                // By the usual way, for its format and for the collector. The line has room now.
                tracing::warn!(target: TARGET, dropped, "{dropped} log lines were dropped: standard error was not read in time");
            }
            self.state.lock().is_writing = false;
            self.news.notify_all();
        }
    }
}

/// Without the lock of the standard library's own handle: whoever holds that while nobody reads would make everybody wait
/// who prints something, a panic included.
#[cfg(unix)]
fn stderr() -> io::Result<impl Write + Send> {
    use std::os::fd::AsFd as _;
    Ok(std::fs::File::from(
        io::stderr().as_fd().try_clone_to_owned()?,
    ))
}

#[cfg(not(unix))]
fn stderr() -> io::Result<impl Write + Send> {
    Ok(io::stderr())
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        LineWriter(&self.0)
    }
}

/// The formatter writes each line at once.
impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::time::Duration;

    use tracing_subscriber::fmt::MakeWriter as _;

    use super::Lines;

    #[test]
    fn whoever_logs_does_not_wait_for_a_reader() {
        const LINE: [u8; 100] = [b'x'; 100];
        let (mut reader, writer) = std::io::pipe().unwrap();
        let lines = Lines::start(writer, 10 * LINE.len()).unwrap();
        // Nobody reads: the pipe takes some, the queue takes some, and the rest is dropped.
        while lines.0.state.lock().dropped < 1_000 {
            lines.make_writer().write_all(&LINE).unwrap();
        }

        let read = std::thread::spawn(move || {
            let (mut read, mut part) = (Vec::new(), [0; 4096]);
            while let Ok(bytes @ 1..) = reader.read(&mut part) {
                read.extend_from_slice(&part[..bytes]);
            }
            read
        });
        lines.flush(Duration::from_secs(20));
        let state = lines.0.state.lock();
        assert!(state.waiting.is_empty() && state.bytes == 0 && state.dropped == 0);
        assert!(!read.is_finished());
    }
}
