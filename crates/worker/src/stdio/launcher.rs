//! Bringing a process up: start, handshake, subscriptions.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use shoal_protocol::Era;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::binding::Binding;
use super::child;
use super::config::{EraChoice, StdioConfig};
use super::era::{self, Opening};
use super::error::StartError;
use super::process::Process;
use super::subscriptions::{self, Subscriptions};

/// Starts processes of one command.
pub(super) struct Launcher {
    /// How.
    pub(super) config: StdioConfig,
    /// What every process is to watch.
    pub(super) subscriptions: Arc<Subscriptions>,
    /// Fires when the backend shuts down.
    pub(super) closing: CancellationToken,
    /// What the command turned out to be: its era is a property of the program, so that it has to
    /// be found out only for the first process, and the one after a failure: programs are updated.
    known: Mutex<Known>,
    /// How often the process whose lists are the catalog was started anew.
    pub(super) restarts: AtomicU64,
}

#[derive(Clone, Copy, Default)]
struct Known {
    era: Option<Era>,
    failed_since: bool,
    /// Whether the last opening that failed was a legacy one alone.
    was_legacy: bool,
}

impl Launcher {
    /// Nothing is started yet.
    pub(super) fn new(config: StdioConfig) -> Self {
        Self {
            config,
            subscriptions: Arc::new(Subscriptions::new()),
            closing: CancellationToken::new(),
            known: Mutex::default(),
            restarts: AtomicU64::new(0),
        }
    }

    /// The command's era, once a process has told.
    pub(super) fn era(&self) -> Option<Era> {
        self.known.lock().era
    }

    /// Starts a process for everybody.
    pub(super) async fn launch_shared(&self) -> Result<Arc<Process>, StartError> {
        self.launch(&Binding::shared(&self.config)).await
    }

    /// Starts a process and waits until it is ready for requests.
    pub(super) async fn launch(&self, binding: &Binding) -> Result<Arc<Process>, StartError> {
        tokio::select! {
            biased;
            () = self.closing.cancelled() => Err(StartError::Closed),
            launched = self.probe_and_launch(binding) => launched,
        }
    }

    async fn probe_and_launch(&self, binding: &Binding) -> Result<Arc<Process>, StartError> {
        let known = *self.known.lock();
        let patience = self.config.probe_timeout.get();
        let opening = match (self.config.era, known.era.filter(|_| !known.failed_since)) {
            (EraChoice::Legacy, _) | (EraChoice::Auto, Some(Era::Legacy)) => Opening::Legacy,
            (EraChoice::Modern, _) | (EraChoice::Auto, Some(Era::Modern)) => Opening::Modern,
            (EraChoice::Auto, None) => Opening::Either(patience),
        };
        let began = Instant::now();
        let mut attempt = self.attempt(binding, opening).await;
        if let Err(error) = &attempt
            && opening == Opening::Either(patience)
            && error.may_come_of_opening()
        {
            // What it was sent last is what may have upset it; or else, the next time, the other one.
            let other = if began.elapsed() < patience || known.was_legacy {
                Opening::Modern
            } else {
                Opening::Legacy
            };
            tracing::debug!(target: "shoal::stdio", %error, ?other, "the opening failed; starting again with one only");
            // If that fails too, the first failure says more: it came of what both eras begin with.
            attempt = self.attempt(binding, other).await.or(attempt);
            self.known.lock().was_legacy = attempt.is_err() && other == Opening::Legacy;
        }
        let mut known = self.known.lock();
        known.failed_since = attempt.is_err();
        if let Ok(process) = &attempt {
            known.era = Some(process.link.greeting().era);
        }
        drop(known);
        attempt
    }

    /// Starts a process that is spoken to in the modern era, whatever the others are.
    pub(super) async fn launch_modern(&self) -> Result<Arc<Process>, StartError> {
        let binding = Binding::shared(&self.config);
        tokio::select! {
            biased;
            () = self.closing.cancelled() => Err(StartError::Closed),
            launched = self.attempt(&binding, Opening::Modern) => launched,
        }
    }

    async fn attempt(
        &self,
        binding: &Binding,
        opening: Opening,
    ) -> Result<Arc<Process>, StartError> {
        let spawned = child::spawn(&self.config).map_err(|source| StartError::Spawn {
            command: self.config.command.clone(),
            source: source.into(),
        })?;
        let watched = self.subscriptions.clone();
        let process = Process::attend(
            spawned,
            &self.config,
            binding.clone(),
            watched,
            &self.closing,
        );
        let greeting = tokio::time::timeout(
            self.config.start_timeout.get(),
            era::greet(&process.link, opening),
        );
        let greeting = greeting.await.unwrap_or(Err(StartError::TimedOut))?;
        process.link.set_greeting(greeting);
        tokio::spawn(subscriptions::keep(
            process.link.clone(),
            self.subscriptions.clone(),
            process.over(),
        ));
        Ok(Arc::new(process))
    }
}
