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
    /// A process of one role and one of another are killed at once.
    TwoRoles,
    /// Session nodes stop for longer than their lease, and go on.
    Pause,
    /// Session nodes stop for longer than connections may be silent, but go on within their lease.
    ShortPause,
    /// Edges stop, and go on.
    PauseEdge,
    /// Workers stop, and go on.
    PauseWorker,
    /// Redis stops, and goes on.
    PauseRedis,
    /// The way between edges and a session node is cut, or silent.
    CutEdgeSession,
    /// The way between session nodes and a worker is cut, or silent.
    CutSessionWorker,
    /// The way between a node (or all) and Redis is cut, or silent.
    CutRedis,
    /// Between two members, one hears the other and is not heard.
    OneWay,
    /// Between two members, or one and Redis, everything is late, or little passes in a second.
    Slow,
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
    pub const ALL: [Self; 18] = [
        Self::Edge,
        Self::Session,
        Self::Worker,
        Self::TwoRoles,
        Self::Pause,
        Self::ShortPause,
        Self::PauseEdge,
        Self::PauseWorker,
        Self::PauseRedis,
        Self::CutEdgeSession,
        Self::CutSessionWorker,
        Self::CutRedis,
        Self::OneWay,
        Self::Slow,
        Self::RedisRestart,
        Self::RedisWipe,
        Self::Rolling,
        Self::Mixed,
    ];

    /// What a mixed run chooses from.
    pub(super) const MIXED: [Self; 16] = [
        Self::Edge,
        Self::Session,
        Self::Worker,
        Self::TwoRoles,
        Self::Pause,
        Self::ShortPause,
        Self::PauseEdge,
        Self::PauseWorker,
        Self::PauseRedis,
        Self::CutEdgeSession,
        Self::CutSessionWorker,
        Self::CutRedis,
        Self::OneWay,
        Self::Slow,
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
            Self::CutEdgeSession
                | Self::CutSessionWorker
                | Self::CutRedis
                | Self::OneWay
                | Self::Slow
                | Self::Mixed
        )
    }

    /// What it excuses. Killed edges and lost data are excused by when they happened.
    pub(super) fn rules(self) -> Rules {
        let loses_workers = matches!(
            self,
            Self::Worker
                | Self::TwoRoles
                | Self::PauseWorker
                | Self::CutSessionWorker
                | Self::OneWay
                | Self::Mixed
        );
        Rules {
            outcome_unknown: loses_workers,
            // Nobody who runs or carries a call dies by the other faults.
            reruns: !matches!(
                self,
                Self::None
                    | Self::Edge
                    | Self::PauseEdge
                    | Self::PauseRedis
                    | Self::CutEdgeSession
                    | Self::Rolling
            ),
            // A rollout fails no request.
            not_executed: !matches!(self, Self::None | Self::Rolling),
            ..Rules::default()
        }
    }
}
