//! The modern connection to a server that speaks both eras and was opened as a legacy one.
//!
//! A server's requests to clients exist only in the legacy era, `InputRequiredResult` only in the
//! modern one, and a server may have tools of both kinds. No list tells which is which. So a call runs
//! over a legacy connection first. If its tool answers by `InputRequiredResult`, the server's SDK refuses to
//! send that on a legacy connection, and the call is run again over a modern connection. That is what such
//! a tool is made for: its client calls it from the beginning for each round. The other way round,
//! a tool that asks by a request would have done its first half twice.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::{Call, CallFailure, CallOutcome, Repeat};
use shoal_protocol::task::TASKS;
use shoal_protocol::{ClientCapability, Era, Method, RawJson, RawObject, Revision, code, declares};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::error::{RequestError, StartError};
use super::launcher::Launcher;
use super::link::Link;
use super::restart_delay::RestartDelay;
use super::settings::EraChoice;

/// Tools and prompts that are remembered to ask by their results; others are found out at each call.
const REMEMBERED: usize = 1024;
/// What the official Python SDK says of any result that it cannot send.
const INVALID_RESULT: &str = "Handler returned an invalid result";
/// What other SDKs say of this result in particular, in lower case.
const NAMED: [&str; 2] = ["inputrequiredresult", "input-required result"];

/// The facts about a server's modern side, and the connection to it if callers share one.
pub(crate) struct ModernSide {
    launcher: Arc<Launcher>,
    connection: tokio::sync::Mutex<ModernConnection>,
    support: Mutex<ModernSupport>,
}

#[derive(Default)]
struct ModernSupport {
    /// Tools and prompts that ask by their result, by method and name, and methods of extensions that exist here alone.
    asking: HashSet<(Method, String)>,
    /// Whether a connection of it has ever run.
    seen: bool,
    /// Whether the server turned out not to be modern at all.
    absent: bool,
    /// Whether a process of its was asked for this era.
    was_asked: bool,
    /// Whether that process has answered as if it were opened in this era.
    has_switched: bool,
    /// The extensions that it declares in this era, and not in the other.
    extensions: Option<RawObject>,
}

struct ModernConnection {
    connection: Option<Arc<Connection>>,
    restart_delay: RestartDelay,
    /// Before this, a connection that failed is not started again.
    not_before: Instant,
}

impl ModernSide {
    /// No connection yet.
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

    /// Whether a call belongs here from the beginning: a later round of what began here, perhaps on
    /// another worker, or a call of what is known to ask by its result.
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

    /// Whether a call that ended so over a legacy connection is to run here instead.
    ///
    /// An answer that names the result shows that the tool has only asked. One that may as well come of a handler's fault
    /// does not: a call that must not be repeated ends with it, and what it is about runs here from the next call on.
    pub(crate) fn is_wanted_by(&self, call: &Call, outcome: &CallOutcome) -> bool {
        let CallOutcome::Error(error) = outcome else {
            return false;
        };
        if call.method.may_be_of_extension() {
            // That it does not know the method says that nothing was executed.
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

    /// Remembers that what a call is about asks by its result.
    pub(crate) fn remember(&self, call: &Call) {
        // Resources have no end of names.
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

    /// Whether the server of a legacy connection may have extensions in the modern era alone. A process speaks one era: to start a
    /// second one in vain may take from the first what only one can have, so the first one is asked, once.
    pub(crate) async fn may_have_more(&self, lead: &Arc<Link>) -> bool {
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
            // SDKs that know both eras refuse this one's opening here by its name.
            Err(RequestError::Rpc(error)) => {
                error.code == code::UNSUPPORTED_VERSION
                    || error.message.contains(Revision::LATEST.as_str())
            }
            Err(_) => false,
        }
    }

    /// Whether a process was asked that.
    pub(crate) fn was_asked(&self) -> bool {
        self.support.lock().was_asked
    }

    /// Whether that process may speak the modern era alone from then on. The Go SDK's does, and then refuses requests to clients.
    pub(crate) fn has_switched(&self) -> bool {
        self.support.lock().has_switched
    }

    /// Finds out which extensions the server has in the modern era alone. Returns whether there are any.
    pub(crate) async fn learn(&self, lead: &Link) -> bool {
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

    /// Adds the extensions that the server has in the modern era alone to its legacy capabilities.
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

    /// Opens a modern connection, and remembers whether the server can have one.
    ///
    /// # Errors
    /// It could not be opened.
    pub(crate) async fn open(&self) -> Result<Arc<Connection>, StartError> {
        let opened = self.launcher.launch_modern().await;
        let mut support = self.support.lock();
        match &opened {
            Ok(_) => support.seen = true,
            Err(error) => support.absent = !support.seen && error.may_come_of_opening(),
        }
        opened
    }

    /// The connection that all callers share, opened if there is none.
    ///
    /// # Errors
    /// It could not be opened, and nothing was executed over it.
    pub(crate) async fn connection(
        &self,
        cancelled: &CancellationToken,
    ) -> Result<Arc<Connection>, CallFailure> {
        tokio::select! {
            biased;
            connection = self.start() => connection,
            () = cancelled.cancelled() => Err(CallFailure::not_executed("the server was not ready in time")),
        }
    }

    /// Waits for the end of the connection, which the launcher's token has begun.
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

    async fn start(&self) -> Result<Arc<Connection>, CallFailure> {
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

/// Whether the caller can answer anything: a tool's question to others leads nowhere.
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

/// What a call is about.
fn subject(call: &Call) -> Option<(Method, String)> {
    if call.method.may_be_of_extension() {
        return Some((call.method.clone(), String::new()));
    }
    let params = call.params.as_ref().and_then(RawObject::of)?;
    let name = params.get("name")?.string()?;
    Some((call.method.clone(), name))
}

/// The extensions that a server declares, but for tasks: those are followed over any connection.
fn extensions(capabilities: &RawJson) -> Option<RawObject> {
    let mut declared = RawObject::of(&capabilities.member("extensions")?)?;
    declared.remove(TASKS);
    Some(declared)
}
