//! Proves that a case's features work, and that the others are off.

use anyhow::{Context, bail, ensure};
use http::HeaderValue;

use super::case::Case;
use super::credentials::Credentials;
use super::quotas::RARE;
use super::rules::HIDDEN;
use super::turn;
use crate::connection::Goodbye;
use crate::failure::Failure;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::target::Target;

const WRONG_ARGUMENTS: &str = r#""name":"echo","arguments":{"text":7}"#;

/// Without Shoal's validation, the tool refuses in other words.
const REFUSED_BY_SHOAL: &str = "Invalid arguments for tool";

/// `admin` is the admin port, if the server is a single process.
pub(super) async fn of(
    case: &Case,
    url: &str,
    admin: Option<&str>,
    credentials: Option<&Credentials>,
) -> anyhow::Result<()> {
    let mut target = Target::resolve(url).await?;
    if let Some(credentials) = credentials {
        for stranger in [None, Some(Credentials::of_a_stranger())] {
            target.authorization = stranger;
            refuses(case.mode, &target).await?;
        }
        target.authorization = Some(credentials.header());
    }
    validates(case, &target).await?;
    hides(case, &target).await?;
    limits(case, &target).await?;
    let Some(admin) = admin else {
        return Ok(());
    };
    let counts = turn::metrics(admin.to_owned()).await.is_ok();
    ensure!(
        counts == case.features.metrics,
        "the server has metrics, or has none, against its settings"
    );
    Ok(())
}

async fn refuses(mode: Mode, target: &Target) -> anyhow::Result<()> {
    let entered = async {
        let mut client = Client::open(target, mode, Goodbye::Finish).await?;
        client.tools().await
    };
    match entered.await {
        Err(Failure::Status { status: 401, .. }) => Ok(()),
        Err(other) => Err(other).context("a client without the token was not answered with 401"),
        Ok(_) => bail!("a client without the token was let in"),
    }
}

async fn hides(case: &Case, target: &Target) -> anyhow::Result<()> {
    let mut client = Client::open(target, case.mode, Goodbye::Finish).await?;
    let tools = client.tools().await?;
    client.end().await?;
    let hidden = !tools.iter().any(|tool| tool == HIDDEN);
    ensure!(
        hidden == case.features.policy,
        "the server has rules, or has none, against its settings: {tools:?}"
    );
    Ok(())
}

async fn limits(case: &Case, target: &Target) -> anyhow::Result<()> {
    let mut client = Client::open(target, case.mode, Goodbye::Finish).await?;
    let name = HeaderValue::from_static(RARE);
    let arguments = format!(r#""name":"{RARE}","arguments":{{"text":"rare"}}"#);
    client
        .request("tools/call", Some(&name), &arguments, |_| Ok(()))
        .await?;
    let second = client
        .request("tools/call", Some(&name), &arguments, |_| Ok(()))
        .await;
    let limited = match second {
        Ok(()) => false,
        Err(Failure::Status { status: 429, .. }) => true,
        Err(other) => return Err(other).context("a second call of a tool with a quota"),
    };
    ensure!(
        limited == case.features.quotas,
        "the server has quotas, or has none, against its settings"
    );
    Ok(())
}

async fn validates(case: &Case, target: &Target) -> anyhow::Result<()> {
    let mut client = Client::open(target, case.mode, Goodbye::Finish).await?;
    let name = HeaderValue::from_static("echo");
    let answer = client
        .request("tools/call", Some(&name), WRONG_ARGUMENTS, |result| {
            Ok(result.to_owned())
        })
        .await?;
    client.end().await?;
    let validated = answer.contains(REFUSED_BY_SHOAL);
    ensure!(
        validated == case.features.validation,
        "wrong arguments were checked by the server, or were not, against its settings: {answer}"
    );
    Ok(())
}
