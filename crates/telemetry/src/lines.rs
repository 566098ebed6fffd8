//! Writes lines to standard error or a file, whose reader may have stopped.
//!
//! A write to a full pipe blocks, so a separate thread writes from a queue that is bounded in bytes. Lines that do not
//! fit are dropped and counted.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// If this many bytes wait, the writer stops gathering: they fit into the processor's cache, and fewer would wake it
/// too often.
const ENOUGH: usize = 256 << 10;

#[derive(Clone, Debug)]
pub(crate) struct LineSink(Arc<LineQueue>);

pub(crate) trait LineOutput: Send + 'static {
    fn write(&mut self, lines: &[u8]);

    /// Reports the lines dropped since the last report, once there is room again.
    fn dropped(&mut self, count: u64);
}

#[derive(Debug)]
struct LineQueue {
    limit: usize,
    gather: Duration,
    state: Mutex<LineBuffer>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct LineBuffer {
    waiting: Vec<u8>,
    bytes: usize,
    dropped: u64,
    is_writing: bool,
    is_awaited: bool,
}

impl LineSink {
    /// At most `limit` bytes wait. The writer gathers lines for a while, which is cheaper under load.
    pub(crate) fn start(
        name: &str,
        output: impl LineOutput,
        limit: usize,
        gather: Duration,
    ) -> io::Result<Self> {
        let queue = Arc::new(LineQueue {
            limit,
            gather,
            state: Mutex::default(),
            news: Condvar::new(),
        });
        let lines = Self(queue.clone());
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || queue.write_to(output))?;
        Ok(lines)
    }

    /// Returns false if the line was dropped.
    pub(crate) fn push(&self, line: &[u8]) -> bool {
        let queue = &*self.0;
        let mut state = queue.state.lock();
        if state.bytes + line.len() > queue.limit {
            state.dropped += 1;
            return false;
        }
        state.bytes += line.len();
        state.waiting.extend_from_slice(line);
        let wakes = !state.is_writing || queue.is_filling(&state);
        drop(state);
        if wakes {
            queue.news.notify_all();
        }
        true
    }

    pub(crate) fn flush(&self, within: Duration) {
        let deadline = Instant::now() + within;
        let mut state = self.0.state.lock();
        state.is_awaited = true;
        self.0.news.notify_all();
        while state.is_writing || !state.waiting.is_empty() || state.dropped > 0 {
            if self.0.news.wait_until(&mut state, deadline).timed_out() {
                return;
            }
        }
    }
}

impl LineQueue {
    fn is_filling(&self, state: &LineBuffer) -> bool {
        state.waiting.len() > ENOUGH || state.bytes > self.limit / 2
    }

    fn write_to(&self, mut output: impl LineOutput) {
        let mut lines = Vec::new();
        loop {
            {
                let mut state = self.state.lock();
                while state.waiting.is_empty() {
                    state.is_writing = false;
                    state.is_awaited = false;
                    self.news.notify_all();
                    self.news.wait(&mut state);
                }
                state.is_writing = true;
                let until = Instant::now() + self.gather;
                while !state.is_awaited && !self.is_filling(&state) {
                    if self.news.wait_until(&mut state, until).timed_out() {
                        break;
                    }
                }
                std::mem::swap(&mut lines, &mut state.waiting);
            }
            output.write(&lines);
            let dropped = {
                let mut state = self.state.lock();
                state.bytes -= lines.len();
                std::mem::take(&mut state.dropped)
            };
            lines.clear();
            if dropped > 0 {
                output.dropped(dropped);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeWriter, Read as _, Write as _};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::{LineOutput, LineSink};

    struct Pipe(PipeWriter, Arc<AtomicU64>);

    impl LineOutput for Pipe {
        fn write(&mut self, lines: &[u8]) {
            self.0.write_all(lines).unwrap();
        }

        fn dropped(&mut self, count: u64) {
            self.1.fetch_add(count, Ordering::Relaxed);
        }
    }

    #[test]
    fn whoever_writes_a_line_does_not_wait_for_a_reader() {
        const LINE: [u8; 100] = [b'x'; 100];
        let (mut reader, writer) = std::io::pipe().unwrap();
        let told = Arc::new(AtomicU64::default());
        let output = Pipe(writer, Arc::clone(&told));
        let lines = LineSink::start("test", output, 100_000, Duration::ZERO).unwrap();
        let mut dropped = 0;
        while dropped < 1_000 {
            dropped += u64::from(!lines.push(&LINE));
        }

        let read = std::thread::spawn(move || {
            let (mut read, mut part) = (0, [0; 4096]);
            while let Ok(bytes @ 1..) = reader.read(&mut part) {
                read += bytes;
            }
            read
        });
        lines.flush(Duration::from_secs(20));
        let state = lines.0.state.lock();
        assert!(state.waiting.is_empty() && state.bytes == 0 && state.dropped == 0);
        assert_eq!(told.load(Ordering::Relaxed), dropped);
        assert!(!read.is_finished());
    }
}
