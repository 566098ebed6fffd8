//! Prints the reference page of metrics and spans, `docs/metrics.md`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(shoal_telemetry::metrics::markdown().as_bytes())
}
