//! Opens a connection, and finds out whether its server is modern or legacy.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use shoal_ports::{CallFailure, shown};
use shoal_protocol::{
    Era, Method, Outcome, RawJson, RawObject, Revision, RpcError, SERVER_INFO, code,
};

use super::error::StartError;
use super::greeting::Greeting;
use super::link::{RequestHandle, ServerLink};
use super::pending::RequestOutcome;

/// How much longer to wait for `initialize`, as a multiple of `probe_timeout`, if the server first
/// answers `server/discover` and lists legacy versions.
const SLOW: u32 = 4;

/// Maximum characters of a server's versions in messages.
const SHOWN: usize = 200;

/// Earlier revisions have no capability for completions, although their servers may offer completions.
const FIRST_WITH_COMPLETIONS: Revision = Revision::V2025_03_26;

fn with_completions(capabilities: RawJson) -> RawJson {
    let Some(mut declared) = RawObject::of(&capabilities) else {
        return capabilities;
    };
    let may_complete = declared.has("prompts") || declared.has("resources");
    if !may_complete || declared.has("completions") {
        return capabilities;
    }
    declared.set("completions", RawJson::from_static("{}"));
    declared.to_json()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// `initialize`, then `server/discover` if the server refuses or does not answer in this time.
    /// A server of both eras is opened as legacy, because only legacy servers send requests to
    /// clients.
    Either(Duration),
    Legacy(InitializeForm),
    Modern,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum InitializeForm {
    /// The newest legacy revision.
    #[default]
    Newest,
    /// 2025-06-18: capabilities without members.
    Memberless,
    /// 2025-03-26: without elicitation.
    WithoutElicitation,
    /// 2024-11-05: without capabilities.
    Bare,
}

impl InitializeForm {
    pub(crate) const PLAINER: [Self; 3] = [Self::Memberless, Self::WithoutElicitation, Self::Bare];

    /// The first form follows the last.
    pub(crate) fn next_plainer(self) -> Self {
        Self::PLAINER[self as usize % Self::PLAINER.len()]
    }

    fn version(self) -> Revision {
        match self {
            Self::Newest => Revision::LATEST_LEGACY,
            Self::Memberless => Revision::V2025_06_18,
            Self::WithoutElicitation => Revision::V2025_03_26,
            Self::Bare => Revision::V2024_11_05,
        }
    }

    fn capabilities(self, full: RawJson) -> RawJson {
        let nothing = RawJson::from_static("{}");
        let Some(declared) = RawObject::of(&full).filter(|_| self != Self::Newest) else {
            return full;
        };
        let mut plain = RawObject::default();
        for (name, _) in declared.iter() {
            let is_known = match self {
                Self::Newest | Self::Bare => false,
                Self::Memberless => true,
                Self::WithoutElicitation => name != "elicitation",
            };
            if is_known && name != "extensions" {
                plain.set(&name, nothing.clone());
            }
        }
        plain.to_json()
    }
}

/// Opens the connection. The caller limits the time, and uses `fallback` afterwards.
pub(crate) async fn greet(
    link: &Arc<ServerLink>,
    opening: Opening,
    fallback: &OnceLock<Greeting>,
) -> Result<Greeting, StartError> {
    match opening {
        Opening::Legacy(form) => {
            let answer = initialize(link, form).await?.outcome().await;
            settle_legacy(link, answer).await
        }
        Opening::Modern => {
            let answer = discover(link).await?.outcome().await;
            judge(answer).map(|discovered| discovered.greeting)
        }
        Opening::Either(patience) => either(link, patience, fallback).await,
    }
}

struct Discovered {
    greeting: Greeting,
    is_dual: bool,
}

async fn either(
    link: &Arc<ServerLink>,
    patience: Duration,
    fallback: &OnceLock<Greeting>,
) -> Result<Greeting, StartError> {
    let mut initialize = initialize(link, InitializeForm::Newest).await?;
    let early = tokio::time::timeout(patience, initialize.outcome()).await;
    let waits = early.is_err();
    let mut refused = match early {
        Ok(RequestOutcome::Answered(Outcome::Error(error))) => Some(StartError::Refused(error)),
        Ok(RequestOutcome::Rejected(error)) => Some(StartError::Rejected(error)),
        Ok(answer) => return settle_legacy(link, answer).await,
        Err(_) => None,
    };
    let mut discover = discover(link).await?;
    let answer = tokio::select! {
        biased;
        // A slow starter (`npx` with a download) finds both requests waiting. A legacy server then
        // answers `initialize` before it refuses the other request.
        late = initialize.outcome(), if waits => match late {
            RequestOutcome::Answered(Outcome::Error(error)) => {
                refused = Some(StartError::Refused(error));
                discover.outcome().await
            }
            RequestOutcome::Rejected(error) => {
                refused = Some(StartError::Rejected(error));
                discover.outcome().await
            }
            late => return settle_legacy(link, late).await,
        },
        answer = discover.outcome() => answer,
    };
    match (judge(answer), refused) {
        (Err(StartError::NotModern | StartError::Rejected(_)), Some(refused)) => Err(refused),
        // The answer to `initialize` may still arrive.
        (Err(StartError::NotModern), None) if waits => {
            let late = initialize.outcome().await;
            settle_legacy(link, late).await
        }
        // The server may be slow to open a session, and only legacy servers send requests to clients.
        (Ok(Discovered { greeting, is_dual }), None) if waits && is_dual => {
            let modern = fallback.get_or_init(|| greeting).clone();
            let patience = patience.saturating_mul(SLOW);
            match tokio::time::timeout(patience, initialize.outcome()).await {
                Ok(late) => settle_legacy(link, late).await.or(Ok(modern)),
                Err(_) => Ok(modern),
            }
        }
        (judged, _) => judged.map(|discovered| discovered.greeting),
    }
}

async fn open(
    link: &Arc<ServerLink>,
    method: Method,
    params: RawJson,
) -> Result<RequestHandle, StartError> {
    let opened = link.open(method, Some(params)).await;
    opened
        .map(RequestHandle::never_cancelled)
        .map_err(|reason| StartError::Ended { reason })
}

async fn discover(link: &Arc<ServerLink>) -> Result<RequestHandle, StartError> {
    let params = link.with_own_meta(RawObject::default());
    open(link, Method::Discover, params).await
}

async fn initialize(
    link: &Arc<ServerLink>,
    form: InitializeForm,
) -> Result<RequestHandle, StartError> {
    let mut params = RawObject::default();
    params.set("protocolVersion", RawJson::of(form.version().as_str()));
    let capabilities = form.capabilities(link.binding().capabilities());
    params.set("capabilities", capabilities);
    params.set("clientInfo", link.binding().client_info());
    open(link, Method::Initialize, params.to_json()).await
}

async fn settle_legacy(
    link: &Arc<ServerLink>,
    answer: RequestOutcome,
) -> Result<Greeting, StartError> {
    let result = match answer {
        RequestOutcome::Answered(Outcome::Result(result)) => result,
        RequestOutcome::Answered(Outcome::Error(error)) => return Err(StartError::Refused(error)),
        RequestOutcome::Rejected(error) => return Err(StartError::Rejected(error)),
        RequestOutcome::TooLarge | RequestOutcome::Unreadable(_) => {
            return Err(StartError::Malformed);
        }
        RequestOutcome::Refused(failure) | RequestOutcome::Declined(failure) => {
            return Err(busy(&failure));
        }
        RequestOutcome::Lost { reason, .. } => return Err(StartError::Ended { reason }),
    };
    let result = RawObject::of(&result).ok_or(StartError::Malformed)?;
    // Without a common version, the client must end the connection (2025-11-25, Lifecycle, Version
    // Negotiation), because known messages may have another meaning.
    let version = match result.get("protocolVersion").and_then(|v| v.string()) {
        Some(version) => legacy(&version).ok_or_else(|| unsupported(&[version]))?,
        None => return Err(StartError::Versionless),
    };
    link.notify(Method::Initialized, None).await;
    let mut greeting = Greeting::of(Era::Legacy, &result, result.get("serverInfo"));
    if version < FIRST_WITH_COMPLETIONS {
        greeting.capabilities = with_completions(greeting.capabilities);
    }
    if greeting.declares("logging") {
        // Requests all levels once. Shoal filters by each caller's level later.
        let level = RawJson::from_static(r#"{"level":"debug"}"#);
        let link = link.clone();
        tokio::spawn(async move { link.request(Method::SetLevel, Some(level)).await });
    }
    Ok(greeting)
}

fn busy(failure: &CallFailure) -> StartError {
    StartError::Refused(RpcError::new(code::OVERLOADED, failure.to_string()))
}

fn judge(answer: RequestOutcome) -> Result<Discovered, StartError> {
    let result = match answer {
        RequestOutcome::Answered(Outcome::Result(result)) => result,
        RequestOutcome::Answered(Outcome::Error(error)) => return Err(judge_error(error)),
        RequestOutcome::Rejected(error) => return Err(StartError::Rejected(error)),
        RequestOutcome::Lost { reason, .. } => return Err(StartError::Ended { reason }),
        RequestOutcome::Refused(failure) | RequestOutcome::Declined(failure) => {
            return Err(busy(&failure));
        }
        RequestOutcome::TooLarge | RequestOutcome::Unreadable(_) => {
            return Err(StartError::Malformed);
        }
    };
    let result = RawObject::of(&result).ok_or(StartError::NotModern)?;
    let versions = result
        .get("supportedVersions")
        .ok_or(StartError::NotModern)?;
    let offered = offered(&versions);
    judge_versions(&offered)?;
    let info = result
        .get("_meta")
        .and_then(|meta| RawObject::of(&meta)?.get(SERVER_INFO));
    Ok(Discovered {
        greeting: Greeting::of(Era::Modern, &result, info),
        is_dual: speaks(&offered, Era::Legacy),
    })
}

/// Only modern servers use certain error codes. Any other error means a legacy server.
fn judge_error(error: RpcError) -> StartError {
    let supported = error.data.as_ref().and_then(RawObject::of);
    let supported = supported.and_then(|data| data.get("supported"));
    match (error.code, supported) {
        (code::UNSUPPORTED_VERSION, Some(versions)) => {
            let offered = offered(&versions);
            judge_versions(&offered).err().unwrap_or_else(|| {
                // The server refused the newest version, so none of its listed versions is usable.
                unsupported(&offered)
            })
        }
        (code::MISSING_CLIENT_CAPABILITY, _) => StartError::Refused(error),
        _ => StartError::NotModern,
    }
}

fn judge_versions(offered: &[String]) -> Result<(), StartError> {
    if speaks(offered, Era::Modern) {
        Ok(())
    } else if speaks(offered, Era::Legacy) {
        Err(StartError::NotModern)
    } else {
        Err(unsupported(offered))
    }
}

fn speaks(offered: &[String], era: Era) -> bool {
    let mut known = offered.iter().filter_map(|v| v.parse::<Revision>().ok());
    known.any(|revision| revision.era() == era)
}

fn offered(versions: &RawJson) -> Vec<String> {
    versions.read().unwrap_or_default()
}

fn unsupported(offered: &[String]) -> StartError {
    StartError::Unsupported {
        versions: shown(&offered.join(", "), SHOWN),
        known: Revision::ALL.map(Revision::as_str).join(", "),
    }
}

/// Precedes the first published revision. The TypeScript SDK still accepts it.
const BEFORE_ALL: &str = "2024-10-07";

fn legacy(version: &str) -> Option<Revision> {
    if version == BEFORE_ALL {
        return Some(Revision::V2024_11_05);
    }
    let revision: Revision = version.parse().ok()?;
    (revision.era() == Era::Legacy).then_some(revision)
}

#[cfg(test)]
mod tests {
    use shoal_protocol::RawJson;

    use super::with_completions;

    #[test]
    fn what_may_be_completed_makes_a_server_complete() {
        for (declared, has) in [
            (r#"{"prompts":{}}"#, true),
            (r#"{"resources":{"subscribe":true},"logging":{}}"#, true),
            (r#"{"tools":{}}"#, false),
            ("{}", false),
        ] {
            let made = with_completions(RawJson::from_static(declared));
            assert_eq!(made.member("completions").is_some(), has, "{declared}");
        }
        let own = r#"{"prompts":{},"completions":{"x":1}}"#;
        assert_eq!(with_completions(RawJson::from_static(own)).as_str(), own);
    }
}
