//! Tracks whether this node knows all pools.
//!
//! Until a starting node knows all pools, it refuses unknown names as safe to retry, and lists wait, both for a limited
//! time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use shoal_ports::CallFailure;
use tokio::time::Instant;

use crate::config::{Config, PoolSettings};

/// Without a new pool for this time, the lists count as whole. Workers connect to all nodes at
/// about the same time.
const QUIET: Duration = Duration::from_millis(700);
const RETRY_AFTER: Duration = Duration::from_secs(1);
pub(crate) const NOT_WHOLE: &str = "this node does not know every pool yet; try again";

#[derive(Clone, Debug)]
pub(crate) struct Picture {
    learns_until: Instant,
    settles_until: Instant,
    /// When a pool last announced its first catalog.
    newest: Option<Instant>,
    /// Pools that other nodes know, each with the end of the wait for it.
    expected: Arc<BTreeMap<Arc<str>, Instant>>,
}

impl Picture {
    pub(crate) fn new(config: &Config) -> Self {
        let now = Instant::now();
        Self {
            learns_until: now + config.learn_for,
            settles_until: now + config.settle_within,
            newest: None,
            expected: Arc::default(),
        }
    }

    pub(crate) fn came(&mut self, now: Instant) {
        self.newest = Some(now);
    }

    /// Returns whether other nodes' pools changed. An expected pool keeps its time limit.
    pub(crate) fn expect(&mut self, pools: &BTreeSet<String>, settings: &PoolSettings) -> bool {
        let named = |(pool, known): (&String, &Arc<str>)| pool.as_str() == known.as_ref();
        if pools.len() == self.expected.len() && pools.iter().zip(self.expected.keys()).all(named) {
            return false;
        }
        let now = Instant::now();
        let expected = pools.iter().map(|pool| {
            let before = self.expected.get(pool.as_str()).copied();
            let until = before.unwrap_or_else(|| now + settings.of(pool).linger.get());
            (Arc::from(pool.as_str()), until)
        });
        self.expected = Arc::new(expected.collect());
        true
    }

    pub(crate) fn missing(
        &self,
        now: Instant,
        is_known: impl Fn(&str) -> bool,
    ) -> Option<(&Arc<str>, Instant)> {
        let mut expected = self.expected.iter();
        let missing = expected.find(|(pool, until)| now < **until && !is_known(pool))?;
        Some((missing.0, *missing.1))
    }

    pub(crate) fn waits_until(&self, pool: &str) -> Option<Instant> {
        self.expected.get(pool).copied()
    }

    pub(crate) fn why_not(
        &self,
        now: Instant,
        is_known: impl Fn(&str) -> bool,
    ) -> Option<CallFailure> {
        if let Some((pool, _)) = self.missing(now, &is_known) {
            let reason =
                format!("the pool {pool}, which other nodes know, has not joined this one yet");
            return Some(not_ready(reason));
        }
        if !self.expected.is_empty() && self.expected.keys().all(|pool| is_known(pool)) {
            return None;
        }
        let left = self.learns_until.saturating_duration_since(now);
        (!left.is_zero()).then(|| CallFailure::NotReady {
            reason: "this node has just started and may not know every pool yet".to_owned(),
            retry_after: left.max(RETRY_AFTER),
        })
    }

    pub(crate) fn unsettled(
        &self,
        now: Instant,
        is_known: impl Fn(&str) -> bool,
    ) -> Option<Duration> {
        let end = self.settles_until;
        let until = match (self.missing(now, is_known), self.newest) {
            (Some((_, until)), _) => until,
            (None, None) => end,
            (None, Some(newest)) => newest + QUIET,
        };
        let left = until.min(end).saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

pub(crate) fn not_ready(reason: String) -> CallFailure {
    CallFailure::NotReady {
        reason,
        retry_after: RETRY_AFTER,
    }
}
