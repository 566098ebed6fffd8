//! The modern connection to a server of both eras that was opened as a legacy one.
//!
//! Requests to clients exist only in the legacy era, `InputRequiredResult` only in the modern one,
//! and lists do not tell which tools use which. So a call first runs over a legacy connection. If
//! its tool returns `InputRequiredResult`, the server's SDK cannot send it, and Shoal runs the call
//! again over a modern connection, as such tools expect. The reverse order would run the first half
//! of a requesting tool twice.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::{Call, CallFailure, CallOutcome, Repeat};
use shoal_protocol::task::TASKS;
use shoal_protocol::{ClientCapability, Era, Method, RawJson, RawObject, Revision, code, declares};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::ServerConnection;
use super::error::{RequestError, StartError};
use super::launcher::Launcher;
use super::link::ServerLink;
use super::restart_delay::RestartDelay;
use super::settings::EraChoice;

/// Maximum remembered tools and prompts that ask by result. Shoal detects others at each call.
const REMEMBERED: usize = 1024;
/// The official Python SDK's error for any result that it cannot send.
const INVALID_RESULT: &str = "Handler returned an invalid result";
/// Other SDKs' errors for an `InputRequiredResult`, in lower case.
const NAMED: [&str; 2] = ["inputrequiredresult", "input-required result"];

pub(crate) struct ModernSide {
    launcher: Arc<Launcher>,
    connection: tokio::sync::Mutex<ModernConnection>,
    support: Mutex<ModernSupport>,
}

#[derive(Default)]
struct ModernSupport {
    /// Includes methods of extensions that only the modern era has.
    asking: HashSet<(Method, String)>,
    seen: bool,
    absent: bool,
    was_asked: bool,
    has_switched: bool,
    extensions: Option<RawObject>,
}

struct ModernConnection {
    connection: Option<Arc<ServerConnection>>,
    restart_delay: RestartDelay,
    not_before: Instant,
}

impl ModernSide {
    pub(crate) fn new(launcher: Arc<Launcher>) -> Self {
        let running = ModernConnection {
            connection: None,
            restart_delay: RestartDelay::of(&launcher.settings),
            not_before: Instant::now(),
        };
        Self {
            connection: tokio::sync::Mutex::new(running),
            support: Mutex::default(),
            launcher,
        }
    }

    /// Whether a call must run here: it brings answers or state, or its tool is known to ask by
    /// result.
    pub(crate) fn takes(&self, call: &Call) -> bool {
        if !self.is_there() {
            return false;
        }
        if call.method.may_be_of_extension() {
            let subject = subject(call);
            let support = self.support.lock();
            return subject.is_some_and(|subject| support.asking.contains(&subject));
        }
        if !call.method.may_require_input() {
            return false;
        }
        let Some(params) = call.params.as_ref().and_then(RawObject::of) else {
            return false;
        };
        if params.has("inputResponses") || params.has("requestState") {
            return true;
        }
        let support = self.support.lock();
        !support.asking.is_empty()
            && subject(call).is_some_and(|subject| support.asking.contains(&subject))
    }

    /// Whether a call with this legacy outcome must run again here.
    ///
    /// An error that names `InputRequiredResult` proves that the tool only asked. A generic error
    /// may be a handler's fault, so a journaled call keeps the error, and later calls of its tool
    /// run here.
    pub(crate) fn is_wanted_by(&self, call: &Call, outcome: &CallOutcome) -> bool {
        let CallOutcome::Error(error) = outcome else {
            return false;
        };
        if call.method.may_be_of_extension() {
            // The method was unknown, so nothing ran.
            let has_more = || self.support.lock().extensions.is_some();
            return error.code == code::METHOD_NOT_FOUND && has_more() && self.is_there();
        }
        let message = error.message.to_lowercase();
        let names_it = NAMED.iter().any(|name| message.contains(name));
        let generic = error.code == code::INTERNAL_ERROR && error.message == INVALID_RESULT;
        let asked = call.method.may_require_input()
            && (generic || names_it)
            && self.is_there()
            && can_answer(call);
        let again = asked && (names_it || call.repeat == Repeat::Safe);
        if asked && !again {
            tracing::warn!(
                target: "shoal::upstream",
                "a tool seems to ask by InputRequiredResult; this call of it must not be repeated and fails, later ones \
                 go over a modern connection (era = \"modern\" avoids that)"
            );
            self.remember(call);
        }
        again
    }

    pub(crate) fn remember(&self, call: &Call) {
        // Not remembered, because the number of URIs has no limit.
        if call.method == Method::ResourcesRead {
            return;
        }
        let mut support = self.support.lock();
        if support.asking.len() < REMEMBERED
            && let Some(subject) = subject(call)
        {
            support.asking.insert(subject);
        }
    }

    /// Whether the server may have extensions that only the modern era has. A process speaks one era, and a
    /// useless second process may take resources from the first, so Shoal probes the first, once.
    pub(crate) async fn may_have_more(&self, lead: &Arc<ServerLink>) -> bool {
        if self.launcher.settings.era != EraChoice::Auto || lead.greeting().era != Era::Legacy {
            return false;
        }
        if !self.launcher.transport.has_servers_of_their_own() {
            return true;
        }
        let was_asked = std::mem::replace(&mut self.support.lock().was_asked, true);
        if was_asked {
            return false;
        }
        let params = lead.with_own_meta(RawObject::default());
        match lead.request(Method::Discover, Some(params)).await {
            Ok(_) => {
                self.support.lock().has_switched = true;
                true
            }
            // SDKs that know both eras reject the modern version on a legacy connection.
            Err(RequestError::Rpc(error)) => {
                error.code == code::UNSUPPORTED_VERSION
                    || error.message.contains(Revision::LATEST.as_str())
            }
            Err(_) => false,
        }
    }

    pub(crate) fn was_asked(&self) -> bool {
        self.support.lock().was_asked
    }

    /// Whether the probe has switched the process to the modern era. The Go SDK then refuses
    /// requests to clients.
    pub(crate) fn has_switched(&self) -> bool {
        self.support.lock().has_switched
    }

    pub(crate) async fn learn(&self, lead: &ServerLink) -> bool {
        let Ok(connection) = self.launcher.launch_modern().await else {
            return false;
        };
        let declared = extensions(&connection.link.greeting().capabilities);
        connection.shutdown().await;
        let known = extensions(&lead.greeting().capabilities).unwrap_or_default();
        let more = declared.filter(|declared| declared.iter().any(|(name, _)| !known.has(&name)));
        let mut support = self.support.lock();
        support.seen = true;
        support.extensions = more;
        support.extensions.is_some()
    }

    pub(crate) fn extended(&self, capabilities: &RawJson) -> RawJson {
        let support = self.support.lock();
        let Some(more) = &support.extensions else {
            return capabilities.clone();
        };
        let mut all = extensions(capabilities).unwrap_or_default();
        for (name, settings) in more.iter() {
            if !all.has(&name) {
                all.set(&name, settings);
            }
        }
        let mut declared = RawObject::of(capabilities).unwrap_or_default();
        declared.set("extensions", all.to_json());
        declared.to_json()
    }

    /// Opens the modern connection, and records whether the server supports it.
    pub(crate) async fn open(&self) -> Result<Arc<ServerConnection>, StartError> {
        let opened = self.launcher.launch_modern().await;
        let mut support = self.support.lock();
        match &opened {
            Ok(_) => support.seen = true,
            Err(error) => support.absent = !support.seen && error.may_come_of_opening(),
        }
        opened
    }

    pub(crate) async fn connection(
        &self,
        cancelled: &CancellationToken,
    ) -> Result<Arc<ServerConnection>, CallFailure> {
        tokio::select! {
            biased;
            connection = self.start() => connection,
            () = cancelled.cancelled() => Err(CallFailure::not_executed("the server was not ready in time")),
        }
    }

    pub(crate) async fn close(&self) {
        let connection = self.connection.lock().await.connection.take();
        if let Some(connection) = connection {
            connection.shutdown().await;
        }
    }

    fn is_there(&self) -> bool {
        let launcher = &self.launcher;
        launcher.settings.era == EraChoice::Auto
            && launcher.era() == Some(Era::Legacy)
            && !self.support.lock().absent
    }

    async fn start(&self) -> Result<Arc<ServerConnection>, CallFailure> {
        let mut running = self.connection.lock().await;
        running
            .connection
            .take_if(|connection| !connection.is_alive());
        if let Some(connection) = &running.connection {
            return Ok(connection.clone());
        }
        let began = Instant::now();
        if began < running.not_before {
            return Err(CallFailure::not_executed(
                "the server's modern connection failed and is opened again soon",
            ));
        }
        match self.open().await {
            Ok(connection) => {
                running.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                tracing::warn!(target: "shoal::upstream", %error, "a modern connection to the server could not be opened");
                running.not_before = Instant::now() + running.restart_delay.after_failure(began);
                Err(CallFailure::not_executed(error.to_string()))
            }
        }
    }
}

fn can_answer(call: &Call) -> bool {
    [
        ClientCapability::ElicitationForm,
        ClientCapability::ElicitationUrl,
        ClientCapability::Sampling,
        ClientCapability::Roots,
    ]
    .into_iter()
    .any(|answer| declares(&call.caller.capabilities, answer))
}

fn subject(call: &Call) -> Option<(Method, String)> {
    if call.method.may_be_of_extension() {
        return Some((call.method.clone(), String::new()));
    }
    let params = call.params.as_ref().and_then(RawObject::of)?;
    let name = params.get("name")?.string()?;
    Some((call.method.clone(), name))
}

fn extensions(capabilities: &RawJson) -> Option<RawObject> {
    let mut declared = RawObject::of(&capabilities.member("extensions")?)?;
    declared.remove(TASKS);
    Some(declared)
}
