//! Recent calls by tool.
//!
//! Counting takes no lock. Clients can make up names, so only tools of the catalog are counted.

use std::hash::BuildHasher as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use shoal_ports::{Outcomes, RecentCalls};
use shoal_telemetry::metrics::{NameKind, metrics};

use super::{MessageOutcome, STEP, ToolCounters};

pub(super) const MOST: usize = 1_000;
/// At least twice `MOST`, so that searches are short.
const SLOTS: usize = 2_048;
const WINDOWS: usize = 6;
const STEPS: usize = 12;
const WINDOW: Duration = Duration::from_secs(STEP.as_secs() * STEPS as u64);

pub(super) struct Tools {
    slots: Box<[OnceLock<Box<RecordedTool>>]>,
    hasher: std::hash::RandomState,
    taken: AtomicUsize,
    steps: AtomicUsize,
    began: Instant,
}

struct RecordedTool {
    name: Box<str>,
    windows: [ToolCounters; WINDOWS],
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| OnceLock::new()).collect(),
            hasher: std::hash::RandomState::new(),
            taken: AtomicUsize::new(0),
            steps: AtomicUsize::new(0),
            began: Instant::now(),
        }
    }
}

impl Tools {
    pub(super) fn count(&self, name: &str, ended: MessageOutcome, took: Duration) {
        let tool = self.find(name, || {
            let known = metrics().known.has(NameKind::Tool, name);
            known && self.taken.fetch_add(1, Ordering::Relaxed) < MOST
        });
        if let Some(tool) = tool {
            tool.windows[self.window()].count(ended, took);
        }
    }

    /// The last step of a window drops the oldest window.
    pub(super) fn end_step(&self) {
        let ended = self.steps.load(Ordering::Relaxed) + 1;
        if ended.is_multiple_of(STEPS) {
            let next = ended / STEPS % WINDOWS;
            for tool in self.slots.iter().filter_map(OnceLock::get) {
                tool.windows[next].take();
            }
        }
        self.steps.store(ended, Ordering::Relaxed);
    }

    pub(super) fn recent(&self, name: &str) -> RecentCalls {
        let counted = self.find(name, || false);
        if counted.is_none() && self.taken.load(Ordering::Relaxed) >= MOST {
            return RecentCalls::default();
        }
        let mut recent = RecentCalls {
            seconds: self.covered().as_secs().max(1),
            ..RecentCalls::default()
        };
        for window in counted.iter().flat_map(|tool| &tool.windows) {
            recent.add(&window.outcomes(), &window.latency.counts());
        }
        if recent.outcomes == Outcomes::default() {
            recent.latency.clear();
        }
        recent
    }

    fn covered(&self) -> Duration {
        let whole = self.steps.load(Ordering::Relaxed) / STEPS;
        let since = self.began.elapsed();
        match u32::try_from(whole.saturating_sub(WINDOWS - 1)) {
            Ok(0) => since,
            Ok(forgotten) => since.saturating_sub(WINDOW.saturating_mul(forgotten)),
            Err(_) => WINDOW,
        }
    }

    fn window(&self) -> usize {
        self.steps.load(Ordering::Relaxed) / STEPS % WINDOWS
    }

    /// Gives a new tool a free slot if `may` returns true.
    fn find(&self, name: &str, may: impl FnOnce() -> bool) -> Option<&RecordedTool> {
        let first = self.hasher.hash_one(name) as usize % SLOTS;
        let mut may = Some(may);
        for at in (first..SLOTS).chain(0..first) {
            let slot = &self.slots[at];
            let tool = match slot.get() {
                Some(tool) => tool,
                None => {
                    if let Some(may) = may.take()
                        && !may()
                    {
                        return None;
                    }
                    slot.get_or_init(|| Box::new(RecordedTool::new(name)))
                }
            };
            if *tool.name == *name {
                return Some(tool);
            }
        }
        None
    }
}

impl RecordedTool {
    fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            windows: Default::default(),
        }
    }
}

#[cfg(test)]
mod tests;
