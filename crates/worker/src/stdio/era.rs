//! The opening of a connection: finding out whether a process is modern or legacy.

use std::sync::Arc;
use std::time::Duration;

use shoal_protocol::{
    Era, Method, Outcome, RawJson, RawObject, Revision, RpcError, SERVER_INFO, code,
};

use super::error::StartError;
use super::flights::Landing;
use super::link::{Link, Ticket};

/// What a process said of itself.
#[derive(Clone, Debug)]
pub(super) struct Greeting {
    /// How it is to be spoken to.
    pub(super) era: Era,
    /// `Implementation`
    pub(super) server_info: Option<RawJson>,
    /// `ServerCapabilities`
    pub(super) capabilities: RawJson,
    /// Instructions for models.
    pub(super) instructions: Option<String>,
}

impl Greeting {
    /// Of a process that has not said anything yet.
    pub(super) const NONE: Self = Self {
        era: Era::Legacy,
        server_info: None,
        capabilities: RawJson::from_static("{}"),
        instructions: None,
    };

    /// Whether a capability is declared.
    pub(super) fn declares(&self, capability: &str) -> bool {
        RawObject::of(&self.capabilities).is_some_and(|declared| declared.has(capability))
    }

    /// Whether a capability is declared with this flag on.
    pub(super) fn offers(&self, capability: &str, flag: &str) -> bool {
        let declared = RawObject::of(&self.capabilities);
        let capability = declared.and_then(|declared| RawObject::of(&declared.get(capability)?));
        capability
            .and_then(|capability| capability.get(flag))
            .is_some_and(|flag| flag.as_str() == "true")
    }

    fn of(era: Era, result: &RawObject, server_info: Option<RawJson>) -> Self {
        Self {
            era,
            server_info,
            capabilities: result
                .get("capabilities")
                .filter(RawJson::is_object)
                .unwrap_or(RawJson::from_static("{}")),
            instructions: result.get("instructions").and_then(|text| text.string()),
        }
    }
}

/// How to open a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// With `server/discover`, and with `initialize` if that tells that the process is legacy or
    /// nothing comes for this long (2026-07-28, stdio, Backward Compatibility).
    Probe(Duration),
    /// With `initialize`.
    Legacy,
}

/// What the answer to the probe tells.
enum Verdict {
    Modern(Greeting),
    Legacy,
}

/// Opens the connection. The caller bounds the time.
pub(super) async fn greet(link: &Arc<Link>, opening: Opening) -> Result<Greeting, StartError> {
    match opening {
        Opening::Legacy => {
            let answer = initialize(link).await?.landing().await;
            settle_legacy(link, answer).await
        }
        Opening::Probe(patience) => probe(link, patience).await,
    }
}

async fn probe(link: &Arc<Link>, patience: Duration) -> Result<Greeting, StartError> {
    let params = link.with_own_meta(RawObject::default());
    let mut discover = open(link, Method::Discover, params).await?;
    let early = tokio::time::timeout(patience, discover.landing()).await;
    let mut early = early.ok().map(judge).transpose()?;
    if let Some(Verdict::Modern(greeting)) = early.take_if(|v| matches!(v, Verdict::Modern(_))) {
        return Ok(greeting);
    }
    let mut initialize = initialize(link).await?;
    let answer = tokio::select! {
        biased;
        // A slow starter (`npx` that downloads first) finds both openings waiting; if it is modern
        // it answers the probe before it refuses `initialize`.
        late = discover.landing(), if early.is_none() => match judge(late)? {
            Verdict::Modern(greeting) => return Ok(greeting),
            Verdict::Legacy => initialize.landing().await,
        },
        answer = initialize.landing() => answer,
    };
    settle_legacy(link, answer).await
}

async fn open(link: &Arc<Link>, method: Method, params: RawJson) -> Result<Ticket, StartError> {
    let opened = link.open(method, Some(params)).await;
    opened
        .map(Ticket::never_cancelled)
        .map_err(|reason| StartError::Ended { reason })
}

async fn initialize(link: &Arc<Link>) -> Result<Ticket, StartError> {
    let mut params = RawObject::default();
    let version = RawJson::of(Revision::LATEST_LEGACY.as_str());
    params.set("protocolVersion", version);
    params.set("capabilities", link.binding().capabilities());
    params.set("clientInfo", link.binding().client_info());
    open(link, Method::Initialize, params.to_json()).await
}

/// Finishes the handshake of a legacy process.
async fn settle_legacy(link: &Arc<Link>, answer: Landing) -> Result<Greeting, StartError> {
    let result = match answer {
        Landing::Answered(Outcome::Result(result)) => result,
        Landing::Answered(Outcome::Error(error)) => return Err(StartError::Refused(error)),
        Landing::TooLarge | Landing::Unreadable(_) => return Err(StartError::Malformed),
        Landing::Lost { reason, .. } => return Err(StartError::Ended { reason }),
    };
    let result = RawObject::of(&result).ok_or(StartError::Malformed)?;
    let version = result.get("protocolVersion").and_then(|v| v.string());
    if version.as_deref().and_then(legacy).is_none() {
        // What it speaks may still be close enough; refusing would help nobody.
        tracing::warn!(target: "shoal::stdio", ?version, "the server negotiated an unknown protocol version");
    }
    link.send(shoal_protocol::notification(
        Method::Initialized.as_str(),
        None,
    ))
    .await;
    let greeting = Greeting::of(Era::Legacy, &result, result.get("serverInfo"));
    if greeting.declares("logging") {
        // Everything, once: each caller's own level is applied on the way back to it.
        let level = RawJson::from_static(r#"{"level":"debug"}"#);
        let link = link.clone();
        tokio::spawn(async move { link.request(Method::SetLevel, Some(level)).await });
    }
    Ok(greeting)
}

fn judge(answer: Landing) -> Result<Verdict, StartError> {
    match answer {
        Landing::Answered(Outcome::Result(result)) => {
            let Some(result) = RawObject::of(&result) else {
                return Ok(Verdict::Legacy);
            };
            let Some(versions) = result.get("supportedVersions") else {
                return Ok(Verdict::Legacy);
            };
            judge_versions(&versions, || {
                let info = result
                    .get("_meta")
                    .and_then(|m| RawObject::of(&m)?.get(SERVER_INFO));
                Greeting::of(Era::Modern, &result, info)
            })
        }
        Landing::Answered(Outcome::Error(error)) => judge_error(&error),
        Landing::TooLarge | Landing::Unreadable(_) => Ok(Verdict::Legacy),
        Landing::Lost { reason, .. } => Err(StartError::Ended { reason }),
    }
}

/// An error that only a modern server sends is no reason to call it legacy; any other is.
fn judge_error(error: &RpcError) -> Result<Verdict, StartError> {
    let supported = error.data.as_ref().and_then(RawObject::of);
    let supported = supported.and_then(|data| data.get("supported"));
    match (error.code, supported) {
        (code::UNSUPPORTED_VERSION, Some(versions)) => {
            // It has just refused the newest, so what it lists can only be reached by `initialize`.
            let offered: Vec<String> = versions.read().unwrap_or_default();
            if offered.iter().any(|version| legacy(version).is_some()) {
                return Ok(Verdict::Legacy);
            }
            Err(StartError::Unsupported {
                versions: offered.join(", "),
            })
        }
        (code::MISSING_CLIENT_CAPABILITY, _) => Err(StartError::Refused(error.clone())),
        _ => Ok(Verdict::Legacy),
    }
}

fn judge_versions(
    versions: &RawJson,
    greeting: impl FnOnce() -> Greeting,
) -> Result<Verdict, StartError> {
    let offered: Vec<String> = versions.read().unwrap_or_default();
    let speaks = |era: Era| {
        let mut known = offered.iter().filter_map(|v| v.parse::<Revision>().ok());
        known.any(|revision| revision.era() == era)
    };
    if speaks(Era::Modern) {
        Ok(Verdict::Modern(greeting()))
    } else if speaks(Era::Legacy) {
        Ok(Verdict::Legacy)
    } else {
        Err(StartError::Unsupported {
            versions: offered.join(", "),
        })
    }
}

fn legacy(version: &str) -> Option<Revision> {
    let revision: Revision = version.parse().ok()?;
    (revision.era() == Era::Legacy).then_some(revision)
}
