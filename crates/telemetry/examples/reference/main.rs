//! Prints the reference page of metrics and spans, `docs/metrics.md`.

mod page;

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(page::markdown().as_bytes())
}
