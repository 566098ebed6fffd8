//! Counts a call's instructions with callgrind, without those of the kernel. The counts repeat to within about 1%,
//! even on a busy machine. One client calls at a time, so each call wakes the server.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use tempfile::TempDir;

use crate::connection::Goodbye;
use crate::engine::call::text;
use crate::mcp::client::Client;
use crate::mcp::{Mode, tools};
use crate::scenario::Finished;
use crate::servers::{Running, one_process};
use crate::target::Target;
use crate::turns::setup::Setup;
use crate::turns::{Case, proof, write_table};

/// These calls exclude one-time work from the count.
const WARM_UP: u64 = 300;

const CALLS: u64 = 1000;

/// Time in which the server sends its last spans.
const EXPORT: Duration = Duration::from_secs(5);

const TEXT_BYTES: usize = 32;

#[derive(Debug, Serialize)]
pub(super) struct Counts {
    calls: u64,
    rows: Vec<Counted>,
}

#[derive(Debug, Serialize)]
struct Counted {
    case: String,
    mode: Mode,
    instructions_per_call: u64,
    more: i64,
    times_off: f64,
}

impl Finished for Counts {
    fn is_correct(&self) -> bool {
        true
    }
}

pub(super) async fn count(cases: &[Case], shoal: &Path) -> anyhow::Result<Counts> {
    let directory = TempDir::new()?;
    let mut rows: Vec<Counted> = Vec::new();
    for case in cases {
        let name = format!("{} {}", case.mode.name(), case.name);
        crate::progress(&name);
        let instructions = of(case, shoal, directory.path()).await;
        let instructions = instructions.with_context(|| format!("case {name}"))?;
        // The base case is the first of its era.
        let base = rows
            .iter()
            .find(|row| row.case == case.base && row.mode == case.mode);
        let base = base.map_or(instructions, |base| base.instructions_per_call);
        rows.push(Counted {
            case: case.name.clone(),
            mode: case.mode,
            instructions_per_call: instructions,
            more: instructions.cast_signed() - base.cast_signed(),
            times_off: instructions as f64 / base as f64,
        });
    }
    Ok(Counts { calls: CALLS, rows })
}

async fn of(case: &Case, shoal: &Path, directory: &Path) -> anyhow::Result<u64> {
    let setup = Setup::of(&case.features, None).await?;
    let profile = directory.join("profile");
    let output = format!("--callgrind-out-file={}", profile.display());
    let words = ["valgrind", "--quiet", "--tool=callgrind", &output];
    let builder = one_process(shoal, None).under(words);
    let server = Running::shoal(builder.settings(setup.settings.clone())).await?;
    proof::of(case, &server.url, server.admin(), &setup).await?;
    let mut target = Target::resolve(&server.url).await?;
    target.authorization.clone_from(&setup.authorization);
    let mut client = Client::open(&target, case.mode, Goodbye::Finish).await?;
    for call in 0..WARM_UP {
        tools::echo(&mut client, "echo", &text(0, call, TEXT_BYTES)).await?;
    }
    control("--zero", server.pids[0]).await?;
    for call in WARM_UP..WARM_UP + CALLS {
        tools::echo(&mut client, "echo", &text(0, call, TEXT_BYTES)).await?;
    }
    if setup.collector.is_some() {
        tokio::time::sleep(EXPORT).await;
    }
    control("--dump", server.pids[0]).await?;
    drop(server);
    let dump = directory.join("profile.1");
    let text = std::fs::read_to_string(&dump)
        .with_context(|| format!("callgrind wrote no {}", dump.display()))?;
    std::fs::remove_file(&dump)?;
    let counted = counted(&text).context("callgrind counted nothing")?;
    Ok(counted / CALLS)
}

fn counted(profile: &str) -> Option<u64> {
    let total = profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: "));
    total?.trim().parse().ok().filter(|total| *total > 0)
}

/// `command` resets or dumps callgrind's counters.
async fn control(command: &str, pid: u32) -> anyhow::Result<()> {
    let mut control = Command::new("callgrind_control");
    control
        .args([command, &pid.to_string()])
        .stdout(Stdio::null());
    let ran = tokio::task::spawn_blocking(move || control.output()).await?;
    let ran = ran.context("could not start callgrind_control, which comes with valgrind")?;
    ensure!(
        ran.status.success(),
        "callgrind_control {command}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    Ok(())
}

impl fmt::Display for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "echo of {TEXT_BYTES} bytes, one client, instructions of a call by callgrind, mean of {} calls\n",
            self.calls
        )?;
        let row = |row: &Counted| {
            vec![
                row.mode.name().to_owned(),
                row.case.clone(),
                row.instructions_per_call.to_string(),
                row.more.to_string(),
                format!("{:.2}", row.times_off),
            ]
        };
        let titles = ["era", "case", "instructions", "more", "× off"];
        write_table(out, &titles, &self.rows.iter().map(row).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn a_profile_ends_with_its_sum() {
        let profile = "events: Ir\nsummary: 96692577\nfn=(1) main\n1 7\n\ntotals: 96693289\n";
        assert_eq!(counted(profile), Some(96_693_289));
        assert_eq!(counted("events: Ir\nsummary: 0\n"), None);
        assert_eq!(counted("totals: 0\n"), None);
    }
}
