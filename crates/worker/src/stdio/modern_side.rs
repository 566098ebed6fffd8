//! The modern process of a server that speaks both eras and was opened as a legacy one.
//!
//! A server's requests to clients exist only in the legacy era, `InputRequiredResult` only in the
//! modern one, and a server may have tools of both kinds. No list tells which is which. So a call runs
//! in a legacy process first. If its tool answers by `InputRequiredResult`, the server's SDK refuses to
//! send that on a legacy connection, and the call is run again in a modern process. That is what such
//! a tool is made for: its client calls it from the beginning for each round. The other way round,
//! a tool that asks by a request would have done its first half twice.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::{Call, CallFailure, CallOutcome, Durability};
use shoal_protocol::{ClientCapability, Era, Method, RawObject, code, declares};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::config::EraChoice;
use super::launcher::Launcher;
use super::process::Process;
use super::restart_delay::RestartDelay;

/// Tools and prompts that are remembered to ask by their results; others are found out at each call.
const REMEMBERED: usize = 1024;
/// What the official Python SDK says of any result that it cannot send.
const INVALID_RESULT: &str = "Handler returned an invalid result";
/// What other SDKs say of this result in particular, in lower case.
const NAMED: [&str; 2] = ["inputrequiredresult", "input-required result"];

/// The modern process, started when a call needs it.
pub(super) struct ModernSide {
    launcher: Arc<Launcher>,
    process: tokio::sync::Mutex<Running>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// What asks by its result, by method and name.
    asking: HashSet<(Method, String)>,
    /// Whether a process of it has ever run.
    seen: bool,
    /// Whether the server turned out not to be modern at all.
    absent: bool,
}

struct Running {
    process: Option<Arc<Process>>,
    restart_delay: RestartDelay,
    /// Before this, a process that failed is not started again.
    not_before: Instant,
}

impl ModernSide {
    /// No process yet.
    pub(super) fn new(launcher: Arc<Launcher>) -> Self {
        let config = &launcher.config;
        let running = Running {
            process: None,
            restart_delay: RestartDelay::of(config),
            not_before: Instant::now(),
        };
        Self {
            process: tokio::sync::Mutex::new(running),
            known: Mutex::default(),
            launcher,
        }
    }

    /// Whether a call belongs here from the beginning: a later round of what began here, perhaps on
    /// another worker, or a call of what is known to ask by its result.
    pub(super) fn takes(&self, call: &Call) -> bool {
        if !self.is_there() || !call.method.may_require_input() {
            return false;
        }
        let Some(params) = call.params.as_ref().and_then(RawObject::of) else {
            return false;
        };
        if params.has("inputResponses") || params.has("requestState") {
            return true;
        }
        let known = self.known.lock();
        !known.asking.is_empty()
            && subject(call).is_some_and(|subject| known.asking.contains(&subject))
    }

    /// Whether a call that ended so in a legacy process is to run here instead.
    ///
    /// An answer that names the result shows that the tool has only asked. One that may as well come of a handler's fault
    /// does not: a call that must not be repeated ends with it, and what it is about runs here from the next call on.
    pub(super) fn is_wanted_by(&self, call: &Call, outcome: &CallOutcome) -> bool {
        let CallOutcome::Error(error) = outcome else {
            return false;
        };
        let message = error.message.to_lowercase();
        let names_it = NAMED.iter().any(|name| message.contains(name));
        let generic = error.code == code::INTERNAL_ERROR && error.message == INVALID_RESULT;
        let asked = call.method.may_require_input()
            && (generic || names_it)
            && self.is_there()
            && can_answer(call);
        let again = asked && (names_it || call.durability == Durability::Repeatable);
        if asked && !again {
            tracing::warn!(
                target: "shoal::stdio",
                "a tool seems to ask by InputRequiredResult; this call of it must not be repeated and fails, later ones \
                 go to a modern process (era = \"modern\" avoids that)"
            );
            self.remember(call);
        }
        again
    }

    /// Remembers that what a call is about asks by its result.
    pub(super) fn remember(&self, call: &Call) {
        // Resources have no end of names.
        if call.method == Method::ResourcesRead {
            return;
        }
        let mut known = self.known.lock();
        if known.asking.len() < REMEMBERED
            && let Some(subject) = subject(call)
        {
            known.asking.insert(subject);
        }
    }

    /// The process, started if there is none.
    ///
    /// # Errors
    /// It could not be started, and nothing was executed in it.
    pub(super) async fn process(
        &self,
        cancelled: &CancellationToken,
    ) -> Result<Arc<Process>, CallFailure> {
        tokio::select! {
            biased;
            process = self.start() => process,
            () = cancelled.cancelled() => Err(CallFailure::not_executed("the server was not ready in time")),
        }
    }

    /// Waits for the end of the process, which the launcher's token has begun.
    pub(super) async fn close(&self) {
        let process = self.process.lock().await.process.take();
        if let Some(process) = process {
            process.shutdown().await;
        }
    }

    fn is_there(&self) -> bool {
        let launcher = &self.launcher;
        launcher.config.era == EraChoice::Auto
            && launcher.era() == Some(Era::Legacy)
            && !self.known.lock().absent
    }

    async fn start(&self) -> Result<Arc<Process>, CallFailure> {
        let mut running = self.process.lock().await;
        running.process.take_if(|process| !process.is_alive());
        if let Some(process) = &running.process {
            return Ok(process.clone());
        }
        let began = Instant::now();
        if began < running.not_before {
            return Err(CallFailure::not_executed(
                "the server's modern process failed and restarts soon",
            ));
        }
        match self.launcher.launch_modern().await {
            Ok(process) => {
                self.known.lock().seen = true;
                running.process = Some(process.clone());
                Ok(process)
            }
            Err(error) => {
                let mut known = self.known.lock();
                known.absent = !known.seen && error.may_come_of_opening();
                drop(known);
                tracing::warn!(target: "shoal::stdio", %error, "a modern process of the server could not be started");
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
    let params = call.params.as_ref().and_then(RawObject::of)?;
    let name = params.get("name")?.string()?;
    Some((call.method.clone(), name))
}
