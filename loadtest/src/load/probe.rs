//! Checks in advance, so that an impossible run fails at once with a reason.

use anyhow::{Context, ensure};

use crate::engine::Shared;
use crate::engine::mix::Kind;

/// `more` are kinds besides those of the mix.
pub(super) async fn check(shared: &Shared, more: &[Kind]) -> anyhow::Result<()> {
    let plan = &shared.plan;
    for kind in plan.mix.kinds() {
        if let Some(why) = kind.impossible_in(plan.mode) {
            let mode = plan.mode.name();
            anyhow::bail!("{kind} cannot be in the mix with --mode {mode}: {why}");
        }
    }
    let mut caller = shared.open(0).await.context("could not open a session")?;
    let tools = shared.in_time(caller.client.tools()).await;
    let tools = tools.context("could not list the server's tools")?;
    for kind in plan.mix.kinds().chain(more.iter().copied()) {
        let tool = kind.tool().unwrap_or(&plan.echo.tool);
        ensure!(
            tools.iter().any(|name| name == tool),
            "the server has no tool {tool}, which {kind} calls; leave {kind} out, or for echo and payloads name the \
             server's own with --tool"
        );
    }
    let _ = shared.in_time(caller.client.end()).await;
    Ok(())
}
