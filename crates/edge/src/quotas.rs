//! Quotas: limits on requests, checked before any work is done.
//!
//! An edge leases cells (tokens) of a rate in advance (`leases.rs`), so it counts most requests
//! locally. Without quotas, a request costs one flag check.

mod leases;
mod requests;
mod rule;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use parking_lot::{Mutex, RwLock};
use shoal_ports::memory::MemoryQuotas;
use shoal_ports::{
    CellRate, Principal, QuotaCells, QuotaConfig, QuotaPer, QuotaSubject, StoreError, Taken,
};
use shoal_protocol::Body;
use shoal_telemetry::metrics::{NameKind, QuotaLeaseOutcome, QuotaOutcome, metrics};
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::task::AbortOnDropHandle;

use self::leases::{AskingStore, LeaseStep, Leases};
use self::requests::CountedRequests;
use self::rule::QuotaRule;
pub(crate) use crate::places::QuotaPlaces;
use crate::refusal::Refusal;

/// A request's maximum wait for the store. After this, the edge counts the request by its own share
/// of the rate.
const PATIENCE: Duration = Duration::from_millis(250);
/// The pause after a failure of the store. After the pause, one request probes the store.
const PAUSE: Duration = Duration::from_secs(1);
const SWEEP: Duration = Duration::from_secs(1);
const CLOSE: Duration = Duration::from_secs(2);
const AT_ONCE: usize = 64;
/// Limits concurrent questions to the store, because requests from many addresses could overload
/// it.
const ASKED_AT_ONCE: usize = 256;

type Edges = Box<dyn Fn() -> usize + Send + Sync>;

/// An edge's quotas. A cheap handle.
#[derive(Clone)]
pub struct Quotas(Arc<QuotasInner>);

struct QuotasInner {
    cells: Arc<dyn QuotaCells>,
    own: MemoryQuotas,
    edges: Edges,
    rules: RwLock<Arc<QuotaRules>>,
    any_of_address: AtomicBool,
    any_of_message: AtomicBool,
    asks: Arc<Semaphore>,
    away: Mutex<Option<Instant>>,
    sweeping: Mutex<Option<AbortOnDropHandle<()>>>,
}

#[derive(Default)]
struct QuotaRules {
    of_address: Vec<Arc<QuotaRule>>,
    of_message: Vec<Arc<QuotaRule>>,
    names_tools: bool,
}

impl QuotaRules {
    fn all(&self) -> impl Iterator<Item = &Arc<QuotaRule>> {
        self.of_address.iter().chain(&self.of_message)
    }

    fn unused(
        &self,
        take: impl Fn(&Leases) -> Vec<(QuotaSubject, u32)>,
    ) -> Vec<(Arc<QuotaRule>, QuotaSubject, u32)> {
        let of_rule = |rule: &Arc<QuotaRule>| {
            let (rule, unused) = (Arc::clone(rule), take(&rule.leases).into_iter());
            unused.map(move |(subject, cells)| (Arc::clone(&rule), subject, cells))
        };
        self.all().flat_map(of_rule).collect()
    }
}

impl Quotas {
    /// Creates an empty set. All edges share `cells`, and `edges` returns their number.
    pub fn new(
        cells: Arc<dyn QuotaCells>,
        edges: impl Fn() -> usize + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(QuotasInner {
            cells,
            own: MemoryQuotas::default(),
            edges: Box::new(edges),
            rules: RwLock::default(),
            any_of_address: AtomicBool::new(false),
            any_of_message: AtomicBool::new(false),
            asks: Arc::new(Semaphore::new(ASKED_AT_ONCE)),
            away: Mutex::new(None),
            sweeping: Mutex::new(None),
        }))
    }

    /// Creates the quotas of a single process.
    pub fn embedded() -> Self {
        Self::new(Arc::new(MemoryQuotas::default()), || 1)
    }

    /// Replaces the quotas. Unchanged ones keep their counts.
    ///
    /// # Panics
    /// Outside a Tokio runtime, if there are quotas.
    pub fn set(&self, quotas: &[QuotaConfig]) {
        let shared = &self.0;
        let names = quotas.iter().map(|quota| &quota.name);
        metrics().known.add(NameKind::Quota, names);
        let before = shared.rules.read().clone();
        let mut rules = QuotaRules::default();
        for config in quotas {
            let known = before.all().find(|rule| rule.config == *config);
            let rule = known.map_or_else(|| Arc::new(QuotaRule::new(config)), Arc::clone);
            rules.names_tools |= !config.tools.is_empty();
            match config.per {
                QuotaPer::Address => rules.of_address.push(rule),
                QuotaPer::Principal | QuotaPer::All => rules.of_message.push(rule),
            }
        }
        let any = |rules: &[Arc<QuotaRule>]| !rules.is_empty();
        let (address, message) = (any(&rules.of_address), any(&rules.of_message));
        *shared.rules.write() = Arc::new(rules);
        (shared.any_of_address).store(address, Ordering::Relaxed);
        (shared.any_of_message).store(message, Ordering::Relaxed);
        if address || message {
            let mut sweeping = shared.sweeping.lock();
            sweeping.get_or_insert_with(|| sweep(shared));
        }
    }

    /// Whether some quota counts client addresses.
    pub fn count_addresses(&self) -> bool {
        self.0.any_of_address.load(Ordering::Relaxed)
    }

    /// Tells operators that the store is away and that each edge counts its own share. `None` if
    /// the store is there.
    pub fn trouble(&self) -> Option<String> {
        let counting = self.count_addresses() || self.0.any_of_message.load(Ordering::Relaxed);
        (counting && self.0.away.lock().is_some()).then(|| {
            "quotas: Redis is away, and each edge counts its own share of the rates".to_owned()
        })
    }

    /// Returns all leases' unused cells to the store.
    pub async fn close(&self) {
        self.0.sweeping.lock().take();
        let rules = self.0.rules.read().clone();
        let giving = self.0.give_all_back(rules.unused(Leases::take_all));
        let _ = timeout(CLOSE, giving).await;
    }

    pub(crate) async fn arrive(
        &self,
        from: Option<IpAddr>,
        came: Instant,
    ) -> Result<QuotaPlaces, Refusal> {
        let Some(address) = from.filter(|_| self.count_addresses()) else {
            return Ok(QuotaPlaces::default());
        };
        let rules = self.0.rules.read().clone();
        let subject = QuotaSubject::address(address);
        self.admit_by(&rules.of_address, came, None, |_| (&subject, 1))
            .await
    }

    pub(crate) async fn admit(
        &self,
        principal: &Principal,
        body: &Body,
        came: Instant,
    ) -> Result<QuotaPlaces, Refusal> {
        if !self.0.any_of_message.load(Ordering::Relaxed) {
            return Ok(QuotaPlaces::default());
        }
        let rules = self.0.rules.read().clone();
        let requests = CountedRequests::of(body, rules.names_tools);
        let own = QuotaSubject::Principal(principal.clone());
        let counted = |rule: &QuotaRule| {
            let subject = match rule.config.per {
                QuotaPer::Principal => &own,
                QuotaPer::Address | QuotaPer::All => &QuotaSubject::Everybody,
            };
            (subject, rule.count(&requests))
        };
        self.admit_by(&rules.of_message, came, Some(principal), counted)
            .await
    }

    /// If a rule refuses, no rule counts the requests. `counted` returns the subject and the number
    /// that a rule counts.
    async fn admit_by<'a>(
        &self,
        rules: &[Arc<QuotaRule>],
        mut now: Instant,
        principal: Option<&Principal>,
        counted: impl Fn(&QuotaRule) -> (&'a QuotaSubject, u32),
    ) -> Result<QuotaPlaces, Refusal> {
        let mut places = QuotaPlaces::default();
        for (at, rule) in rules.iter().enumerate() {
            let (subject, count) = counted(rule);
            if count == 0 {
                continue;
            }
            let mut limit = rule.config.concurrent;
            let admitted = loop {
                match rule.take(subject, count, limit.take(), now, &mut places) {
                    Ok(LeaseStep::Spent) => break Ok(()),
                    Ok(LeaseStep::Refused(wait)) => break Err(rule.used_up(wait)),
                    Ok(LeaseStep::Wait(news)) => {
                        news.await;
                        now = Instant::now();
                    }
                    Ok(LeaseStep::Ask { rate, want, unused }) => {
                        let (rule, subject) = (Arc::clone(rule), subject.clone());
                        self.ask(rule, rate, subject, (count, want), unused);
                    }
                    Err(refusal) => break Err(refusal),
                }
            };
            if let Err(refusal) = admitted {
                rule.refused(subject, principal);
                for rule in &rules[..at] {
                    let (subject, count) = counted(rule);
                    rule.leases.put_back(subject, count);
                }
                return Err(refusal);
            }
            rule.counted(QuotaOutcome::Allowed);
        }
        Ok(places)
    }

    /// A Tokio task asks the store, because all waiting requests share the cells. With too many
    /// open questions, this edge counts its own share.
    fn ask(
        &self,
        rule: Arc<QuotaRule>,
        rate: CellRate,
        subject: QuotaSubject,
        (need, want): (u32, u32),
        unused: u32,
    ) {
        let shared = Arc::clone(&self.0);
        let Ok(place) = Arc::clone(&shared.asks).try_acquire_owned() else {
            let taken = shared.take_own(&rule, rate, &subject, need, want);
            return AskingStore::new(&rule.leases, &subject).answered(need, taken);
        };
        tokio::spawn(async move {
            let asking = AskingStore::new(&rule.leases, &subject);
            let _place = place;
            if unused > 0 {
                shared.give_back(&rule, subject.clone(), unused).await;
            }
            let taken = shared.take(&rule, rate, &subject, need, want).await;
            asking.answered(need, taken);
        });
    }
}

impl QuotasInner {
    async fn take(
        &self,
        rule: &QuotaRule,
        rate: CellRate,
        subject: &QuotaSubject,
        need: u32,
        want: u32,
    ) -> Taken {
        let key = rule.key(subject.clone());
        if self.may_ask() {
            let asked = timeout(PATIENCE, self.cells.take(&key, rate, need, want)).await;
            match asked.unwrap_or_else(|_| Err(no_reply())) {
                Ok(taken) => {
                    self.is_back();
                    rule.leased(match taken {
                        Taken::Cells(_) => QuotaLeaseOutcome::Taken,
                        Taken::Later(_) => QuotaLeaseOutcome::Empty,
                    });
                    return taken;
                }
                Err(error) => self.has_left(&error),
            }
        }
        self.take_own(rule, rate, subject, need, want)
    }

    fn take_own(
        &self,
        rule: &QuotaRule,
        rate: CellRate,
        subject: &QuotaSubject,
        need: u32,
        want: u32,
    ) -> Taken {
        rule.leased(QuotaLeaseOutcome::Local);
        let share = rate.share((self.edges)(), need);
        let key = rule.key(subject.clone());
        self.own.take_now(&key, share, need, want)
    }

    async fn give_all_back(&self, unused: Vec<(Arc<QuotaRule>, QuotaSubject, u32)>) {
        let give = |(rule, subject, cells): (Arc<QuotaRule>, _, _)| async move {
            self.give_back(&rule, subject, cells).await;
        };
        stream::iter(unused)
            .for_each_concurrent(AT_ONCE, give)
            .await;
    }

    async fn give_back(&self, rule: &QuotaRule, subject: QuotaSubject, cells: u32) {
        let Some(rate) = rule.rate.filter(|_| self.may_ask()) else {
            return;
        };
        let key = rule.key(subject);
        let given = timeout(PATIENCE, self.cells.give_back(&key, rate, cells)).await;
        match given.unwrap_or_else(|_| Err(no_reply())) {
            Ok(()) => {
                self.is_back();
                if cells > 0 {
                    rule.leased(QuotaLeaseOutcome::Returned);
                }
            }
            Err(error) => self.has_left(&error),
        }
    }

    async fn look(&self, rules: &QuotaRules) {
        if self.away.lock().is_none() {
            return;
        }
        if let Some(rule) = rules.all().find(|rule| rule.rate.is_some()) {
            self.give_back(rule, QuotaSubject::Everybody, 0).await;
        }
    }

    /// While the store is away, only one request per pause may ask.
    fn may_ask(&self) -> bool {
        let now = Instant::now();
        match &mut *self.away.lock() {
            None => true,
            Some(until) if now < *until => false,
            Some(until) => {
                *until = now + PAUSE;
                true
            }
        }
    }

    fn has_left(&self, error: &StoreError) {
        let until = Instant::now() + PAUSE;
        if self.away.lock().replace(until).is_none() {
            tracing::warn!(%error, "quotas: each edge counts its own share of the rates until Redis is back");
        }
    }

    fn is_back(&self) {
        if self.away.lock().take().is_some() {
            tracing::info!("quotas: Redis is back, and all edges share the rates again");
        }
    }
}

fn no_reply() -> StoreError {
    StoreError::Unavailable("no reply in time".to_owned())
}

fn sweep(shared: &Arc<QuotasInner>) -> AbortOnDropHandle<()> {
    let shared = Arc::downgrade(shared);
    AbortOnDropHandle::new(tokio::spawn(async move {
        let mut every = interval(SWEEP);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            let rules = shared.rules.read().clone();
            shared.look(&rules).await;
            let unused = rules.unused(Leases::take_unused);
            shared.give_all_back(unused).await;
        }
    }))
}

#[cfg(test)]
mod tests;
