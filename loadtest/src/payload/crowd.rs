//! Memory for large bodies must not grow with the number of clients.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::connection::Goodbye;
use crate::failure::Failure;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::mcp::tools::echo;
use crate::outcome::Outcome;
use crate::process;
use crate::servers::{Running, one_process};
use crate::target::Target;

const CALLS: usize = 5;

const CALL_TIMEOUT: Duration = Duration::from_secs(60);

const REFUSED_PAUSE: Duration = Duration::from_millis(200);

/// Maximum ratio of the largest crowd's peak memory to that of half as many clients.
const BOUNDED: f64 = 1.5;

pub(super) async fn measure(
    shoal: &Path,
    bytes: usize,
    crowds: &[usize],
    outcome: &mut Outcome,
    findings: &Findings,
) -> anyhow::Result<()> {
    let mut peaks = Vec::new();
    for &clients in crowds {
        let server = Running::shoal(one_process(shoal, None)).await?;
        let idle = process::peak_rss_kib(server.pids[0])? as f64 / 1024.0;
        let target = Target::resolve(&server.url).await?;
        let refused = storm(&target, clients, bytes, findings).await?;
        let peak = process::peak_rss_kib(server.pids[0])? as f64 / 1024.0;
        crate::progress(&format!(
            "{clients} clients at once: peak {peak:.0} MiB, {refused} refused for a while"
        ));
        let name = format!("{clients} clients at once, {bytes} B each");
        outcome.lower(
            format!("{name}: peak memory above idle"),
            peak - idle,
            "MiB",
        );
        let name = format!("{name}: refused for a while (429, 503)");
        outcome.plain(name, refused as f64, "");
        peaks.push((clients, peak - idle));
    }
    peaks.sort_by_key(|&(clients, _)| clients);
    if let [.., (fewer, low), (more, high)] = peaks[..] {
        outcome.verdict(
            format!(
                "peak memory {high:.0} MiB with {more} clients, {low:.0} MiB with {fewer}: bounded by a limit, at most {BOUNDED} ×"
            ),
            (more >= fewer * 2).then_some(high <= low * BOUNDED),
        );
    }
    Ok(())
}

/// Returns the number of refusals.
async fn storm(
    target: &Target,
    clients: usize,
    bytes: usize,
    findings: &Findings,
) -> anyhow::Result<u64> {
    let start = Arc::new(Barrier::new(clients));
    let text = Arc::new("x".repeat(bytes));
    let refused = Arc::<AtomicU64>::default();
    let mut running = JoinSet::new();
    for _ in 0..clients {
        let client = Client::open(target, Mode::Legacy, Goodbye::Reset).await?;
        let (start, text, refused) = (Arc::clone(&start), Arc::clone(&text), Arc::clone(&refused));
        running.spawn(async move {
            start.wait().await;
            calls(client, &text, &refused).await
        });
    }
    while let Some(ended) = running.join_next().await {
        if let Err(failure) = ended? {
            findings.failed("a large call", &failure);
        }
    }
    Ok(refused.load(Ordering::Relaxed))
}

async fn calls(mut client: Client, text: &str, refused: &AtomicU64) -> Result<(), Failure> {
    let mut made = 0;
    while made < CALLS {
        let answered = timeout(CALL_TIMEOUT, echo(&mut client, "echo", text)).await;
        match answered {
            Ok(Ok(())) => made += 1,
            Ok(Err(failure)) => {
                // A clear refusal is a correct answer to overload.
                let pause = failure.retry_after(REFUSED_PAUSE).ok_or(failure)?;
                refused.fetch_add(1, Ordering::Relaxed);
                sleep(pause).await;
            }
            Err(_) => return Err(Failure::Transport("a large call took too long".to_owned())),
        }
    }
    Ok(())
}
