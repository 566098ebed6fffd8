//! Checks in advance, so that an impossible run fails at once with a reason.

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::mix::Kind;
use super::session::Common;
use crate::connection::{Connection, Goodbye};
use crate::failure::Failure;
use crate::mcp::answer::Message;
use crate::mcp::legacy;

#[derive(Deserialize, Default)]
struct Initialized {
    #[serde(default)]
    capabilities: Capabilities,
}

#[derive(Deserialize, Default)]
struct Capabilities {
    #[serde(default)]
    tasks: Option<serde_json::Value>,
}

pub(super) async fn check(common: &Common, more: &[Kind]) -> anyhow::Result<()> {
    for kind in common.mix.kinds() {
        if let Some(why) = kind.impossible_in(common.mode) {
            anyhow::bail!(
                "{kind} cannot be in the mix with --mode {}: {why}",
                common.mode.name()
            );
        }
    }
    let mut caller = common.open(0).await.context("could not open a session")?;
    let tools = common.in_time(caller.client.tools()).await;
    let tools = tools.context("could not list the server's tools")?;
    for kind in common.mix.kinds().chain(more.iter().copied()) {
        let tool = kind.tool().unwrap_or(&common.echo.tool);
        ensure!(
            tools.iter().any(|name| name == tool),
            "the server has no tool {tool}, which {kind} calls; leave {kind} out, or for echo and payloads name the \
             server's own with --tool"
        );
    }
    let _ = common.in_time(caller.client.end()).await;
    if common.mix.kinds().any(|kind| kind == Kind::Task) {
        let offered = common.in_time(offers_tasks(common)).await?;
        ensure!(
            offered,
            "the server does not offer tasks (capabilities.tasks.requests.tools.call); leave task out of the mix"
        );
    }
    Ok(())
}

async fn offers_tasks(common: &Common) -> Result<bool, Failure> {
    let target = &common.targets[0];
    let connection = Connection::open(target, Goodbye::Finish).await?;
    let mut reply = connection.send(legacy::initialize(target, 1, "{}")).await?;
    while let Some(event) = reply.next().await? {
        if event.data.is_empty() {
            continue;
        }
        let message = Message::parse(&event.data)?;
        if message.is_response() {
            let result = message.result_of(1)?;
            let initialized: Initialized = serde_json::from_str(result)
                .map_err(|cause| Failure::Wrong(format!("{cause} in the answer to initialize")))?;
            let tasks = initialized.capabilities.tasks;
            return Ok(tasks.is_some_and(|tasks| tasks.pointer("/requests/tools/call").is_some()));
        }
    }
    Err(Failure::Wrong("initialize was not answered".to_owned()))
}
