//! The kinds of faults, and what each excuses.

use clap::ValueEnum;

use crate::check::Rules;

/// What fails in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// Nothing.
    None,
    /// Edges are killed.
    Edge,
    /// Session nodes are killed.
    Session,
    /// Workers are killed.
    Worker,
    /// Session nodes stop for longer than their lease, and go on.
    Pause,
    /// The way between edges and a session node is cut, or silent.
    CutEdgeSession,
    /// The way between session nodes and a worker is cut, or silent.
    CutSessionWorker,
    /// The way between a node (or all) and Redis is cut, or silent.
    CutRedis,
    /// Redis is killed and comes back with its data.
    RedisRestart,
    /// Redis is killed and comes back without its data.
    RedisWipe,
    /// Every member is restarted in order, one after the other.
    Rolling,
    /// Any of these, but for the loss of data.
    Mixed,
}

impl Fault {
    /// Every kind of run, the mixed one last.
    pub const ALL: [Self; 11] = [
        Self::Edge,
        Self::Session,
        Self::Worker,
        Self::Pause,
        Self::CutEdgeSession,
        Self::CutSessionWorker,
        Self::CutRedis,
        Self::RedisRestart,
        Self::RedisWipe,
        Self::Rolling,
        Self::Mixed,
    ];

    /// What a mixed run chooses from.
    pub(super) const MIXED: [Self; 9] = [
        Self::Edge,
        Self::Session,
        Self::Worker,
        Self::Pause,
        Self::CutEdgeSession,
        Self::CutSessionWorker,
        Self::CutRedis,
        Self::RedisRestart,
        Self::Rolling,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(super) fn needs_proxies(self) -> bool {
        matches!(
            self,
            Self::CutEdgeSession | Self::CutSessionWorker | Self::CutRedis | Self::Mixed
        )
    }

    /// What it excuses. Killed edges and lost data are excused by when they happened.
    pub(super) fn rules(self) -> Rules {
        let loses_workers = matches!(self, Self::Worker | Self::CutSessionWorker | Self::Mixed);
        Rules {
            outcome_unknown: loses_workers,
            // Nobody who runs or carries a call dies by the other faults.
            reruns: !matches!(
                self,
                Self::None | Self::Edge | Self::CutEdgeSession | Self::Rolling
            ),
            // A rollout fails no request.
            not_executed: !matches!(self, Self::None | Self::Rolling),
            ..Rules::default()
        }
    }
}
