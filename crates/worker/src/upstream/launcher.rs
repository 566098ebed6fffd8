//! Opens connections to one server: transport, handshake, subscriptions.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use shoal_protocol::{Era, RawJson};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::binding::ConnectionBinding;
use super::connection::ServerConnection;
use super::era::{self, InitializeForm, Opening};
use super::error::StartError;
use super::greeting::Greeting;
use super::last_words::LastWords;
use super::link::ServerLink;
use super::own_lists::ServerOwnLists;
use super::server_task::tools::TaskTools;
use super::settings::{EraChoice, UpstreamSettings};
use super::subscribing;
use super::subscriptions::ServerSubscriptions;

/// Maximum time for a start that makes progress, as a multiple of `start_timeout`.
const MOST_WAITS: u32 = 5;
const TELL_EVERY: Duration = Duration::from_secs(5);

pub(crate) trait Transport: Send + Sync + 'static {
    /// Opens a connection, which closes when `closing` fires.
    fn open(
        &self,
        binding: ConnectionBinding,
        subscriptions: Arc<ServerSubscriptions>,
        closing: &CancellationToken,
    ) -> Result<ServerConnection, StartError>;

    fn has_servers_of_their_own(&self) -> bool;

    fn learn(&self, _era: Era, _tools: &mut Vec<RawJson>) {}
}

pub(crate) struct Launcher {
    pub(crate) settings: UpstreamSettings,
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) subscriptions: Arc<ServerSubscriptions>,
    pub(crate) closing: CancellationToken,
    /// The detected era, which all connections to a program share. Only the first connection
    /// probes, and the first one after a failure, because programs are updated.
    detected: Mutex<DetectedEra>,
    pub(crate) restarts: AtomicU64,
    task_tools: Arc<TaskTools>,
    pub(crate) own_lists: Arc<ServerOwnLists>,
    last_words: Mutex<LastWords>,
}

#[derive(Clone, Copy, Default)]
struct DetectedEra {
    era: Option<Era>,
    failed_since: bool,
    was_legacy: bool,
    /// The form of `initialize` that worked, or the next to try.
    form: InitializeForm,
}

impl Launcher {
    pub(crate) fn new(settings: UpstreamSettings, transport: impl Transport) -> Self {
        Self {
            settings,
            transport: Box::new(transport),
            subscriptions: Arc::new(ServerSubscriptions::new()),
            closing: CancellationToken::new(),
            detected: Mutex::default(),
            restarts: AtomicU64::new(0),
            task_tools: Arc::default(),
            own_lists: Arc::default(),
            last_words: Mutex::default(),
        }
    }

    pub(crate) fn era(&self) -> Option<Era> {
        self.detected.lock().era
    }

    pub(crate) fn failed(&self, link: &ServerLink) {
        *self.last_words.lock() = link.last_words.clone();
    }

    pub(crate) fn last_words(&self) -> Vec<String> {
        self.last_words.lock().lines()
    }

    pub(crate) fn stderr(&self) -> Option<String> {
        let lines = self.last_words();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    pub(crate) async fn launch_lead(&self) -> Result<Arc<ServerConnection>, StartError> {
        let opened = self.probe_and_launch(&self.settings.shared, true);
        self.unless_closing(opened).await
    }

    pub(crate) async fn launch(
        &self,
        binding: &ConnectionBinding,
    ) -> Result<Arc<ServerConnection>, StartError> {
        let watches = self.transport.has_servers_of_their_own();
        self.unless_closing(self.probe_and_launch(binding, watches))
            .await
    }

    pub(crate) async fn launch_modern(&self) -> Result<Arc<ServerConnection>, StartError> {
        let watches = self.transport.has_servers_of_their_own();
        self.unless_closing(self.attempt(&self.settings.shared, Opening::Modern, watches))
            .await
    }

    /// Waits longer while stderr shows progress, such as a package manager's download.
    async fn greet(
        &self,
        link: &Arc<ServerLink>,
        opening: Opening,
    ) -> Result<Greeting, StartError> {
        let began = Instant::now();
        let quiet = self.settings.start_timeout;
        let fallback = OnceLock::new();
        let timed_out = || fallback.get().cloned().ok_or(StartError::TimedOut);
        let greeting = era::greet(link, opening, &fallback);
        tokio::pin!(greeting);
        let all = tokio::time::sleep(quiet.saturating_mul(MOST_WAITS));
        let silence = tokio::time::sleep(quiet);
        tokio::pin!(all, silence);
        let mut tell = tokio::time::interval_at(began + TELL_EVERY, TELL_EVERY);
        loop {
            tokio::select! {
                biased;
                greeting = &mut greeting => return greeting,
                () = link.last_words.more() => silence.set(tokio::time::sleep(quiet)),
                () = &mut silence => return timed_out(),
                () = &mut all => return timed_out(),
                _ = tell.tick() => {
                    let said = link.last_words.lines().pop();
                    tracing::info!(target: "shoal::upstream", server = link.name(), said, waited = ?began.elapsed(), "waiting for the server to start");
                }
            }
        }
    }

    async fn unless_closing(
        &self,
        opened: impl Future<Output = Result<Arc<ServerConnection>, StartError>>,
    ) -> Result<Arc<ServerConnection>, StartError> {
        tokio::select! {
            biased;
            () = self.closing.cancelled() => Err(StartError::Closed),
            opened = opened => opened,
        }
    }

    async fn probe_and_launch(
        &self,
        binding: &ConnectionBinding,
        watches: bool,
    ) -> Result<Arc<ServerConnection>, StartError> {
        let detected = *self.detected.lock();
        let patience = self.settings.probe_timeout;
        // After a failure, the probe restarts with the newest form.
        let known_form = match detected.failed_since {
            true => InitializeForm::Newest,
            false => detected.form,
        };
        let opening = match (
            self.settings.era,
            detected.era.filter(|_| !detected.failed_since),
        ) {
            (EraChoice::Legacy, _) | (EraChoice::Auto, Some(Era::Legacy)) => {
                Opening::Legacy(known_form)
            }
            (EraChoice::Modern, _) | (EraChoice::Auto, Some(Era::Modern)) => Opening::Modern,
            (EraChoice::Auto, None) => Opening::Either(patience),
        };
        let began = Instant::now();
        let mut attempt = self.attempt(binding, opening, watches).await;
        if let Err(error) = &attempt
            && opening == Opening::Either(patience)
            && error.may_come_of_opening()
        {
            // The message sent last may have caused the failure: `initialize`, or after `patience`
            // `server/discover`. So the retry sends only the other message. If an earlier retry
            // with `initialize` failed, this one sends `server/discover`.
            let other = if began.elapsed() < patience || detected.was_legacy {
                Opening::Modern
            } else {
                Opening::Legacy(known_form)
            };
            tracing::debug!(target: "shoal::upstream", %error, ?other, "the opening failed; starting again with one only");
            // If this fails too, the first failure is more telling.
            attempt = self.attempt(binding, other, watches).await.or(attempt);
            let was_legacy = matches!(other, Opening::Legacy(_));
            self.detected.lock().was_legacy = attempt.is_err() && was_legacy;
        }
        let mut form = known_form;
        if opening != Opening::Modern
            && let Err(error) = &attempt
        {
            let ended = matches!(error, StartError::Ended { .. });
            for plainer in self.plainer_forms(&detected, error) {
                form = plainer;
                let Ok(connection) = self.attempt(binding, Opening::Legacy(form), watches).await
                else {
                    continue;
                };
                attempt = Ok(connection);
                // The first failure's cause may have passed, so try the newest form again.
                if ended
                    && let Ok(newest) = self
                        .attempt(binding, Opening::Legacy(InitializeForm::Newest), watches)
                        .await
                {
                    form = InitializeForm::Newest;
                    attempt = Ok(newest);
                } else {
                    tracing::info!(target: "shoal::upstream", ?form, "the server takes initialize only in a plainer form");
                }
                break;
            }
        }
        if opening == Opening::Either(patience)
            && let Ok(legacy) = &attempt
            && legacy.link.is_stateless()
        {
            // The legacy era has no benefit for a server whose requests cannot get answers.
            let modern = self.attempt(binding, Opening::Modern, watches).await;
            attempt = modern.or(attempt);
        }
        let mut detected = self.detected.lock();
        if let Err(error) = &attempt
            && error.is_denied()
        {
            return attempt;
        }
        detected.failed_since = attempt.is_err();
        detected.form = form;
        if let Ok(connection) = &attempt {
            detected.era = Some(connection.link.greeting().era);
        }
        drop(detected);
        attempt
    }

    /// Forms of `initialize` to try next, each with fewer members: all at first, later one per failure.
    fn plainer_forms(&self, detected: &DetectedEra, error: &StartError) -> Vec<InitializeForm> {
        let ended = matches!(error, StartError::Ended { .. });
        let may_help = match ended {
            // A process may crash because of the form.
            true => self.transport.has_servers_of_their_own(),
            false => error.may_come_of_form(),
        };
        match detected.failed_since {
            _ if !may_help => Vec::new(),
            true => vec![detected.form.next_plainer()],
            // Each form costs a start, so the plainest waits for the next failure.
            false if ended => vec![
                InitializeForm::Memberless,
                InitializeForm::WithoutElicitation,
            ],
            false => InitializeForm::PLAINER.to_vec(),
        }
    }

    async fn attempt(
        &self,
        binding: &ConnectionBinding,
        opening: Opening,
        watches: bool,
    ) -> Result<Arc<ServerConnection>, StartError> {
        let watched = self.subscriptions.clone();
        let connection = (self.transport).open(binding.clone(), watched, &self.closing)?;
        let greeting = self.greet(&connection.link, opening).await;
        let greeting = greeting.inspect_err(|_| self.failed(&connection.link))?;
        let is_legacy = greeting.era == Era::Legacy;
        connection
            .link
            .set_greeting(greeting, self.task_tools.clone());
        if is_legacy && binding.gives_roots_early() {
            connection.link.asks_for_roots().await;
        }
        if watches {
            tokio::spawn(subscribing::keep(
                connection.link.clone(),
                self.subscriptions.clone(),
                connection.over(),
            ));
        }
        Ok(Arc::new(connection))
    }
}
