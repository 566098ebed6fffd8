//! How whole this node's picture of the pools is: whether what it does not know does not exist.
//!
//! Workers dial nodes, each in its own time, so a node that has just started knows some pools before others. What
//! it does not find in its catalog then is refused as safe to send again, and lists wait. Both end by themselves:
//! a pool that was removed for good is waited for no longer than one whose last worker has gone stays listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use shoal_ports::CallFailure;
use tokio::time::Instant;

use crate::config::{Config, PoolSettings};

/// How long no pool may have come for the lists to be whole: workers dial all nodes at about the same time.
const QUIET: Duration = Duration::from_millis(700);
/// When to come back to a node that waits for a pool.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Why a name is not known yet, without the pool that may offer it.
pub(crate) const NOT_WHOLE: &str = "this node does not know every pool yet; try again";

/// What is known of the pools that there should be.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    /// Until when what is unknown may exist all the same, unless all is known that others know, and lists may wait.
    learns_until: Instant,
    settles_until: Instant,
    /// When a pool said last what it offers that had not before.
    newest: Option<Instant>,
    /// Pools that others know, and until when each is waited for here.
    expected: Arc<BTreeMap<Arc<str>, Instant>>,
}

impl Picture {
    /// Of a node that starts now.
    pub(crate) fn new(config: &Config) -> Self {
        let now = Instant::now();
        Self {
            learns_until: now + config.learn_for,
            settles_until: now + config.settle_within,
            newest: None,
            expected: Arc::default(),
        }
    }

    /// A pool has said what it offers.
    pub(crate) fn came(&mut self, now: Instant) {
        self.newest = Some(now);
    }

    /// Notes which pools others know; whether that is news. One that was named before is waited for no longer.
    pub(crate) fn expect(&mut self, pools: &BTreeSet<String>, settings: &PoolSettings) -> bool {
        let named = |(pool, known): (&String, &Arc<str>)| pool.as_str() == known.as_ref();
        if pools.len() == self.expected.len() && pools.iter().zip(self.expected.keys()).all(named) {
            return false;
        }
        let now = Instant::now();
        let expected = pools.iter().map(|pool| {
            let before = self.expected.get(pool.as_str()).copied();
            let until = before.unwrap_or_else(|| now + settings.of(pool).linger);
            (Arc::from(pool.as_str()), until)
        });
        self.expected = Arc::new(expected.collect());
        true
    }

    /// A pool that others know and that is yet to come here.
    pub(crate) fn missing(
        &self,
        now: Instant,
        is_known: impl Fn(&str) -> bool,
    ) -> Option<(&Arc<str>, Instant)> {
        let mut expected = self.expected.iter();
        let missing = expected.find(|(pool, until)| now < **until && !is_known(pool))?;
        Some((missing.0, *missing.1))
    }

    /// Until when a pool is waited for that others know, unless it is here.
    pub(crate) fn waits_until(&self, pool: &str) -> Option<Instant> {
        self.expected.get(pool).copied()
    }

    /// Why something may exist that this node does not know.
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
        // Who knows all that others know, or knew before this node started, has learnt.
        if !self.expected.is_empty() && self.expected.keys().all(|pool| is_known(pool)) {
            return None;
        }
        let left = self.learns_until.saturating_duration_since(now);
        (!left.is_zero()).then(|| CallFailure::NotReady {
            reason: "this node has just started and may not know every pool yet".to_owned(),
            retry_after: left.max(RETRY_AFTER),
        })
    }

    /// How long the lists are not whole unless something comes; `None` when they are.
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

/// The failure of what this node may know soon.
pub(crate) fn not_ready(reason: String) -> CallFailure {
    CallFailure::NotReady {
        reason,
        retry_after: RETRY_AFTER,
    }
}
