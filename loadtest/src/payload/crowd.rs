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
use crate::outcome::{Better, Outcome, Verdict};
use crate::process;
use crate::servers::spawned::{Environment, Spawned};
use crate::target::Target;

const CALLS: usize = 5;

const CALL_TIMEOUT: Duration = Duration::from_secs(60);

const REFUSED_PAUSE: Duration = Duration::from_millis(200);

/// Maximum ratio of the largest crowd's peak memory to that of half as many clients.
const BOUNDED: f64 = 1.5;

pub(super) struct Plan<'a> {
    pub(super) shoal: &'a Path,
    pub(super) bytes: usize,
    pub(super) clients: &'a [usize],
}

impl Plan<'_> {
    pub(super) async fn measure(
        &self,
        outcome: &mut Outcome,
        findings: &Findings,
        progress: &impl Fn(&str),
    ) -> anyhow::Result<()> {
        let mut peaks = Vec::new();
        for &clients in self.clients {
            let server = Spawned::shoal(self.shoal, None, &Environment::new())?;
            let idle = process::peak_rss_kib(server.pid())? as f64 / 1024.0;
            let target = Target::resolve(&server.url).await?;
            let refused = storm(&target, clients, self.bytes, findings).await?;
            let peak = process::peak_rss_kib(server.pid())? as f64 / 1024.0;
            progress(&format!(
                "{clients} clients at once: peak {peak:.0} MiB, {refused} refused for a while"
            ));
            let name = format!("{clients} clients at once, {} B each", self.bytes);
            outcome.figure(
                format!("{name}: peak memory above idle"),
                peak - idle,
                "MiB",
                Better::Lower,
            );
            outcome.figure(
                format!("{name}: refused for a while (429, 503)"),
                refused as f64,
                "",
                Better::Neither,
            );
            peaks.push((clients, peak - idle));
        }
        peaks.sort_by_key(|&(clients, _)| clients);
        if let [.., (fewer, low), (more, high)] = peaks[..] {
            outcome.verdicts.push(Verdict {
                what: format!(
                    "peak memory {high:.0} MiB with {more} clients, {low:.0} MiB with {fewer}: bounded by a limit, at most {BOUNDED} ×"
                ),
                held: (more >= fewer * 2).then_some(high <= low * BOUNDED),
            });
        }
        Ok(())
    }
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
            Ok(Err(Failure::Status {
                status: 429 | 503,
                retry_after_s,
                ..
            })) => {
                refused.fetch_add(1, Ordering::Relaxed);
                sleep(retry_after_s.map_or(REFUSED_PAUSE, Duration::from_secs)).await;
            }
            Ok(Err(failure)) => return Err(failure),
            Err(_) => return Err(Failure::Transport("a large call took too long".to_owned())),
        }
    }
    Ok(())
}
