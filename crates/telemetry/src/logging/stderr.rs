//! Log lines on their way to standard error.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use crate::lines::{Lines, Output};
use crate::metrics::metrics;

/// Bytes that may wait: thousands of lines.
const QUEUE_BYTES: usize = 1 << 20;
/// Where the line comes from that says how many were dropped.
const TARGET: &str = "shoal_telemetry::lines";

/// The lines of this process that have not been written yet.
static PROCESS: OnceLock<Lines> = OnceLock::new();

/// Lines for standard error; a cheap handle.
#[derive(Debug)]
pub(super) struct Stderr(Lines);

/// Writes one line.
#[derive(Debug)]
pub(super) struct LineWriter<'a>(&'a Lines);

/// Waits until the lines logged so far are written, for `within` at most: for a process that ends in a way of its own.
pub fn flush(within: Duration) {
    if let Some(lines) = PROCESS.get() {
        lines.flush(within);
    }
}

/// Writes lines that are for a person at the terminal, after those that were logged so far and without what a collector wants. Each
/// ends in a line break.
pub fn tell(lines: &str) {
    match PROCESS.get() {
        // What finds no room is nothing that somebody still reads.
        Some(process) => drop(process.push(lines.as_bytes())),
        // Nobody is left to tell when the stream is closed.
        None => drop(io::stderr().write_all(lines.as_bytes())),
    }
}

impl Stderr {
    /// Lines to this process's standard error.
    ///
    /// # Errors
    /// There is no standard error, or no thread for it.
    pub(super) fn start() -> io::Result<Self> {
        let lines = Lines::start("log", Console(handle()?), QUEUE_BYTES, Duration::ZERO)?;
        Ok(Self(PROCESS.get_or_init(|| lines).clone()))
    }
}

struct Console<W>(W);

impl<W: Write + Send + 'static> Output for Console<W> {
    fn write(&mut self, lines: &[u8]) {
        // Who closed standard error wants no lines.
        let _ = self.0.write_all(lines);
    }

    fn dropped(&mut self, dropped: u64) {
        // By the usual way, for its format and for the collector.
        tracing::warn!(target: TARGET, dropped, "{dropped} log lines were dropped: standard error was not read in time");
    }
}

/// Without the lock of the standard library's own handle: whoever holds that while nobody reads would make everybody wait
/// who prints something, a panic included.
#[cfg(unix)]
fn handle() -> io::Result<impl Write + Send> {
    use std::os::fd::AsFd as _;
    Ok(std::fs::File::from(
        io::stderr().as_fd().try_clone_to_owned()?,
    ))
}

#[cfg(not(unix))]
fn handle() -> io::Result<impl Write + Send> {
    Ok(io::stderr())
}

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        LineWriter(&self.0)
    }
}

/// The formatter writes each line at once.
impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if !self.0.push(line) {
            metrics().telemetry.line_dropped();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
