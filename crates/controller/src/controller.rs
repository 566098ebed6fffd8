//! The controller's loop: publishes a new plan whenever the objects change.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::{Client, Config};
use parking_lot::Mutex;
use shoal_outbound::OutboundConfig;
use shoal_ports::kubernetes::KubernetesSettings;
use shoal_telemetry::metrics::{ReconcileOutcome, metrics};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use toml::Table;

use crate::events::Events;
use crate::lease::{Election, Leadership};
use crate::measure::observe;
use crate::plan::Plan;
use crate::publish::Publisher;
use crate::render::{Texts, table, texts};
use crate::status::Report;
use crate::tokens::Tokens;
use crate::translate::Pool;
use crate::watch::Sources;

/// How long the controller gathers changes of objects before it plans the pools again.
const SETTLE: Duration = Duration::from_millis(300);
/// Time limit for reading the token Secrets and writing the ConfigMap and the Secret in one turn.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit for sending the Events of one turn.
const EVENTS: Duration = Duration::from_secs(5);
/// Maximum time until the controller compares its plan with the published pools again, because other clients may have
/// changed them.
const COMPARE: Duration = Duration::from_secs(60);
/// Time limit for the silence of the API server while it owes an answer. The limit is longer than the 290 seconds after
/// which the API server ends a watch.
const SILENCE: Duration = Duration::from_secs(300);
/// Time limit for releasing the Lease when the controller stops.
const GOODBYE: Duration = Duration::from_secs(3);

/// Checks that a pool's name and settings are valid.
pub type Check = Arc<dyn Fn(&str, &Table) -> Result<(), String> + Send + Sync>;

/// Makes pools from the objects of a Kubernetes cluster and publishes them.
pub struct Controller {
    config: KubernetesSettings,
    outbound: OutboundConfig,
    check: Check,
    client: Client,
    me: String,
    sources: Arc<Sources>,
    report: Arc<Mutex<Report>>,
}

impl Controller {
    /// Makes a controller with the name `me` for the cluster of its own pod, or for the cluster that `KUBECONFIG`
    /// names.
    ///
    /// # Errors
    ///
    /// Fails if the process is in no pod with a token and `KUBECONFIG` names no cluster, or as [`new`](Self::new) does.
    pub async fn connect(
        config: KubernetesSettings,
        outbound: OutboundConfig,
        check: Check,
        me: &str,
    ) -> Result<Self, String> {
        let found = Config::infer().await;
        let found = found.map_err(|error| {
            format!("this is no pod of Kubernetes with a token, and KUBECONFIG names no cluster: {error}")
        })?;
        Self::new(found, config, outbound, check, me)
    }

    /// Makes a controller for a known cluster.
    ///
    /// # Errors
    ///
    /// Fails if no client for the API server can be made.
    pub fn new(
        mut cluster: Config,
        config: KubernetesSettings,
        outbound: OutboundConfig,
        check: Check,
        me: &str,
    ) -> Result<Self, String> {
        // kube needs a default crypto provider, because two are compiled in. This has no effect if the process has
        // chosen one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // kube sets no limit, so a list whose connection dies unnoticed would wait forever.
        cluster.read_timeout.get_or_insert(SILENCE);
        cluster.reset_reader_on_write = true;
        let client = Client::try_from(cluster)
            .map_err(|error| format!("cannot make a client of the API server: {error}"))?;
        Ok(Self {
            sources: Sources::of(&config),
            config,
            outbound,
            check,
            client,
            me: me.to_owned(),
            report: Arc::default(),
        })
    }

    /// Returns a function that returns the current report.
    pub fn reporter(&self) -> impl Fn() -> Report + Send + Sync + 'static {
        let (report, sources) = (Arc::clone(&self.report), Arc::clone(&self.sources));
        move || Report {
            listed: sources.listed(),
            sources: sources.report(),
            ..report.lock().clone()
        }
    }

    /// Runs until `stop` fires. `taken` has the names of the pools in Shoal's configuration. The controller refuses
    /// objects whose pools would have these names.
    pub async fn run(self, taken: watch::Receiver<BTreeSet<String>>, stop: CancellationToken) {
        let _observed = observe(&self.report);
        let follow = Arc::clone(&self.sources).follow(self.client.clone(), self.config.retry.get());
        let mut election = Election::new(self.client.clone(), &self.config, &self.me);
        let leadership = watch::Sender::default();
        let seen = leadership.subscribe();
        tokio::select! {
            () = follow => {}
            () = self.stand(&mut election, &leadership) => {}
            () = self.work(seen, taken) => {}
            () = stop.cancelled() => {}
        }
        match timeout(GOODBYE, election.resign()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("the Lease could not be given up: {error}"),
            Err(_) => tracing::warn!("the Lease could not be given up in time"),
        }
    }

    /// Takes part in the election until the future is dropped. Runs beside `work`, so that a slow turn does not delay
    /// the renewal of the Lease.
    async fn stand(&self, election: &mut Election, leadership: &watch::Sender<Leadership>) {
        let mut ticks = interval(election.every());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.elect(election).await;
            leadership.send_replace(election.leadership());
        }
    }

    async fn work(
        &self,
        mut leadership: watch::Receiver<Leadership>,
        mut taken: watch::Receiver<BTreeSet<String>>,
    ) {
        let mut events = Events::new(self.client.clone(), &self.me);
        let mut tokens = Tokens::new(self.client.clone(), &self.config);
        let publisher = Publisher::new(&self.client, &self.config);
        let mut again = interval(self.config.tokens_every.get().min(COMPARE));
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut term = 0;
        loop {
            tokio::select! {
                Ok(()) = leadership.changed() => {
                    let now = *leadership.borrow_and_update();
                    // Each attempt to take or renew the Lease sends this change. A new leader publishes at once. After
                    // a failed turn, the controller repeats the turn.
                    let begins = now.leads() && now.term != term;
                    if !begins && self.report.lock().trouble.is_none() {
                        continue;
                    }
                }
                _ = again.tick() => {}
                () = self.sources.changed.notified() => sleep(SETTLE).await,
                Ok(()) = taken.changed() => {}
            }
            if !self.sources.listed() {
                continue;
            }
            let names = taken.borrow_and_update().clone();
            let now = *leadership.borrow();
            if now.leads() {
                term = now.term;
            }
            self.turn(&names, &leadership, &mut tokens, &publisher, &mut events)
                .await;
        }
    }

    async fn elect(&self, election: &mut Election) {
        let every = election.every();
        let failed = match timeout(every, election.take_part()).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the API server did not answer in time".to_owned()),
        };
        let leads = election.leadership().leads();
        let mut report = self.report.lock();
        if report.leads != leads {
            tracing::info!(leads, leader = election.holder(), "the leader has changed");
        }
        report.leads = leads;
        report.leader = election.holder().map(str::to_owned);
        report.election = failed.map(|failed| format!("the Lease {}: {failed}", self.config.lease));
        if let Some(failed) = &report.election {
            tracing::warn!("cannot take part in the election: {failed}");
        }
    }

    /// Plans the pools, and publishes them if this controller leads.
    async fn turn(
        &self,
        taken: &BTreeSet<String>,
        leadership: &watch::Receiver<Leadership>,
        tokens: &mut Tokens,
        publisher: &Publisher,
        events: &mut Events,
    ) {
        let objects = self.sources.objects();
        let accepts = |pool: &Pool| (self.check)(&pool.name, &table(pool, None));
        let mut plan = Plan::of(&objects, &self.config, &self.outbound, taken, &accepts);
        if !leadership.borrow().leads() {
            self.finish(&mut plan, tokens);
            self.report.lock().trouble = None;
            return;
        }
        let publishing = async {
            tokens.read(&plan.tokens()).await?;
            let texts = self.finish(&mut plan, tokens);
            publisher.publish(&texts).await
        };
        let written = tokio::select! {
            biased;
            () = Leadership::lost(leadership.clone()) => {
                Err("the Lease ended before the API server had answered".to_owned())
            }
            written = timeout(PATIENCE, publishing) => written.unwrap_or_else(|_| {
                let seconds = PATIENCE.as_secs();
                Err(format!("the API server took longer than {seconds} s"))
            }),
        };
        metrics().discovery.reconciled(match &written {
            Ok(true) => ReconcileOutcome::Published,
            Ok(false) => ReconcileOutcome::Unchanged,
            Err(_) => ReconcileOutcome::Failed,
        });
        match &written {
            Ok(true) => {
                let (pools, refused) = (plan.pools.len(), plan.refused.len());
                tracing::info!(pools, refused, "the pools were published");
            }
            Ok(false) => {}
            Err(trouble) => tracing::warn!("the pools could not be published: {trouble}"),
        }
        self.report.lock().published(written.err());
        let tell = timeout(EVENTS, events.tell(&plan));
        tokio::select! {
            biased;
            () = Leadership::lost(leadership.clone()) => {}
            _ = tell => {}
        }
    }

    /// Refuses pools whose token is missing, or which do not fit into the published texts. Returns these texts.
    fn finish(&self, plan: &mut Plan<'_>, tokens: &Tokens) -> Texts {
        plan.without(&tokens.missing);
        let texts = texts(plan, &tokens.known, &self.config.directory);
        self.report.lock().see(plan);
        texts
    }
}
