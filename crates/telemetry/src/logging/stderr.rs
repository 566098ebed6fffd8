use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use crate::lines::{LineOutput, LineSink};
use crate::metrics::metrics;

/// Enough for thousands of lines.
const QUEUE_BYTES: usize = 1 << 20;
const TARGET: &str = "shoal_telemetry::lines";

static PROCESS: OnceLock<LineSink> = OnceLock::new();

#[derive(Debug)]
pub(super) struct Stderr(LineSink);

#[derive(Debug)]
pub(super) struct LineWriter<'a>(&'a LineSink);

/// Waits up to `within` for all lines so far.
pub fn flush(within: Duration) {
    if let Some(lines) = PROCESS.get() {
        lines.flush(within);
    }
}

/// Writes lines for a person, after the lines logged so far. Each must end in a line break.
pub fn tell(lines: &str) {
    match PROCESS.get() {
        // Drops the lines if nobody reads standard error.
        Some(process) => drop(process.push(lines.as_bytes())),
        // Standard error may be closed.
        None => drop(io::stderr().write_all(lines.as_bytes())),
    }
}

impl Stderr {
    pub(super) fn start() -> io::Result<Self> {
        let lines = LineSink::start("log", StderrConsole(handle()?), QUEUE_BYTES, Duration::ZERO)?;
        Ok(Self(PROCESS.get_or_init(|| lines).clone()))
    }
}

struct StderrConsole<W>(W);

impl<W: Write + Send + 'static> LineOutput for StderrConsole<W> {
    fn write(&mut self, lines: &[u8]) {
        // Standard error may be closed.
        let _ = self.0.write_all(lines);
    }

    fn dropped(&mut self, dropped: u64) {
        // Logged and not only written, because the collector needs the line too.
        tracing::warn!(target: TARGET, dropped, "{dropped} log lines were dropped: standard error was not read in time");
    }
}

/// Avoids the standard library's lock: a blocked writer that held it would block all others, including panics.
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
