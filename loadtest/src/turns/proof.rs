//! Proves that a case's features work, and that the others are off.

use anyhow::{Context, bail, ensure};
use shoal_testkit::admin::Admin;

use super::Case;
use super::setup::{HIDDEN, RARE, Setup, random_token};
use crate::connection::Goodbye;
use crate::failure::Failure;
use crate::mcp::client::Client;
use crate::mcp::{Mode, bearer};
use crate::target::Target;

const WRONG_ARGUMENTS: &str = r#"{"text":7}"#;

/// Without Shoal's validation, the tool refuses in other words.
const REFUSED_BY_SHOAL: &str = "Invalid arguments for tool";

/// Returns the server's tools. `admin` is the admin port, if the server is a single process.
pub(crate) async fn of(
    case: &Case,
    url: &str,
    admin: Option<&Admin>,
    setup: &Setup,
) -> anyhow::Result<Vec<String>> {
    let mut target = Target::resolve(url).await?;
    if setup.authorization.is_some() {
        for stranger in [None, Some(bearer(&random_token()))] {
            target.authorization = stranger;
            match listed(case.mode, &target).await {
                Err(Failure::Status { status: 401, .. }) => {}
                Err(other) => {
                    return Err(other)
                        .context("a client without the token was not answered with 401");
                }
                Ok(_) => bail!("a client without the token was let in"),
            }
        }
    }
    target.authorization.clone_from(&setup.authorization);
    let tools = listed(case.mode, &target).await?;
    let hidden = !tools.iter().any(|tool| tool == HIDDEN);
    let mut client = Client::open(&target, case.mode, Goodbye::Finish).await?;
    let answer = client.call("echo", WRONG_ARGUMENTS, |result| Ok(result.to_owned()));
    let validated = answer.await?.contains(REFUSED_BY_SHOAL);
    let mut limited = false;
    for _ in 0..2 {
        let called = client.call(RARE, r#"{"text":"rare"}"#, |_| Ok(()));
        limited = match called.await {
            Err(Failure::Status { status: 429, .. }) if !limited => true,
            answered => answered.map(|()| false)?,
        };
    }
    let mut found = vec![
        ("validation", validated, case.features.validation),
        ("policy", hidden, case.features.policy),
        ("quotas", limited, case.features.quotas),
    ];
    if let Some(admin) = admin {
        let metered = admin.metrics().await.is_ok();
        found.push(("metrics", metered, case.features.metrics));
    }
    for (feature, is_on, expected) in found {
        ensure!(
            is_on == expected,
            "the server has {feature}, or has none, against its settings"
        );
    }
    setup.expect_a_trail().await?;
    Ok(tools)
}

/// Returns the tools of a server that needs no credentials.
pub(crate) async fn tools(mode: Mode, url: &str) -> anyhow::Result<Vec<String>> {
    Ok(listed(mode, &Target::resolve(url).await?).await?)
}

async fn listed(mode: Mode, target: &Target) -> Result<Vec<String>, Failure> {
    let mut client = Client::open(target, mode, Goodbye::Finish).await?;
    let tools = client.tools().await?;
    // A server without sessions may refuse the end of one.
    client.end().await.ok();
    Ok(tools)
}
