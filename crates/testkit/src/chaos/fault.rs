//! The kinds of faults, what each needs, and what it excuses.

use clap::ValueEnum;

use self::Trait::{
    KeepsOwners, LatePings, LosesWrites, Mixes, Proxies, Refuses, Reruns, ShortCalls, ShortDrains,
    SplitPools, Unknown, WrongClocks,
};
use super::inject::{returning, without_ids};
use crate::check::Rules;

/// The fault of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
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
    /// Each second a member of the next role is killed, while most calls last 1 to 10 ms.
    Churn,
    /// All session nodes are killed at once, and come back while some workers cannot reach them.
    NoSessionNodes,
    /// Session nodes stop for longer than their lease, and go on.
    Pause,
    /// What a session node sends to workers is held up; it stops for longer than its lease, and meanwhile what it sent arrives.
    LateStarts,
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
    /// Connections between edges and session nodes, and of workers, are reset several times a second.
    Resets,
    /// The way between a node (or all) and Redis is cut, or silent.
    CutRedis,
    /// Between two members, one hears the other and is not heard.
    OneWay,
    /// Between two members, or one and Redis, everything is late, or little passes in a second.
    Slow,
    /// The clocks of all members are wrong; members of each role are killed, and come back with another wrong clock.
    Clocks,
    /// Members of each role can open no file and no connection any more, for a while.
    Descriptors,
    /// Members of each role are killed, and come back with a standard error that nobody reads.
    Stderr,
    /// A worker is restarted, and has hardly any room for a while.
    RefusingWorker,
    /// Redis is killed and comes back with its data.
    RedisRestart,
    /// Redis is killed and comes back without its data.
    RedisWipe,
    /// Redis has no memory for more, for a while.
    FullRedis,
    /// Redis cannot write to its disk, for a while.
    FullDisk,
    /// Sentinel has a replica take Redis' place, which has all writes, or not the newest.
    Sentinel,
    /// In a Redis Cluster, a replica takes its master's place, who agrees or was killed.
    RedisCluster,
    /// An edge is killed, and comes back under clients that listen there from its first moment. Then a list changes.
    StartingEdges,
    /// An edge is restarted in order, under clients that call it all through its drain.
    DrainingEdges,
    /// Sessions at the end of their time are all used again at once while their nodes sweep, and Redis stops again and again for
    /// longer than a command may take.
    Returning,
    /// WebSocket clients come back without ids to sessions whose oldest events are gone, while session nodes are killed.
    WithoutIds,
    /// Every member is restarted in order, one after the other.
    Rolling,
    /// Any of these, but for the loss of data, on one Redis.
    Mixed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trait {
    /// Needs proxies between the members.
    Proxies,
    /// Needs wrong clocks.
    WrongClocks,
    /// Needs pools that only some workers serve.
    SplitPools,
    /// Excuses an unknown outcome, because workers die or lose their connections.
    Unknown,
    /// Excuses a second run of a call that is safe to repeat.
    Reruns,
    /// Excuses refused calls.
    Refuses,
    /// Most calls must be short.
    ShortCalls,
    /// Calls must outlast drains.
    ShortDrains,
    /// Workers must tolerate connections that are silent for longer than a lease.
    LatePings,
    /// Every node lives and is reachable, so no session may change its owner.
    KeepsOwners,
    /// Excuses missing data, because Redis loses writes that it has acknowledged.
    LosesWrites,
    /// Belongs to a mixed run.
    Mixes,
}

/// Every fault but [`Fault::None`], the mixed one last.
const KINDS: [(Fault, &[Trait]); 34] = [
    (Fault::Edge, &[Refuses, Mixes]),
    (Fault::Session, &[Refuses, Reruns, Mixes]),
    (Fault::Worker, &[Refuses, Reruns, Unknown, Mixes]),
    (Fault::TwoRoles, &[Refuses, Reruns, Unknown, Mixes]),
    (Fault::Churn, &[Refuses, Reruns, Unknown, ShortCalls, Mixes]),
    // A call that is journaled before any worker has joined names no worker. If its owner dies before the next journal
    // entry, the outcome is unknown.
    (
        Fault::NoSessionNodes,
        &[Refuses, Reruns, Unknown, Proxies, SplitPools, Mixes],
    ),
    (Fault::Pause, &[Refuses, Reruns, Mixes]),
    (
        Fault::LateStarts,
        &[Refuses, Reruns, Proxies, ShortCalls, LatePings, Mixes],
    ),
    (Fault::ShortPause, &[Refuses, Reruns, Mixes]),
    (Fault::PauseEdge, &[Refuses, Mixes]),
    (Fault::PauseWorker, &[Refuses, Reruns, Unknown, Mixes]),
    (Fault::PauseRedis, &[Refuses, Mixes]),
    (Fault::CutEdgeSession, &[Refuses, Proxies, Mixes]),
    (
        Fault::CutSessionWorker,
        &[Refuses, Reruns, Unknown, Proxies, Mixes],
    ),
    (
        Fault::Resets,
        &[Refuses, Reruns, Proxies, KeepsOwners, Mixes],
    ),
    (Fault::CutRedis, &[Refuses, Reruns, Proxies, Mixes]),
    (Fault::OneWay, &[Refuses, Reruns, Unknown, Proxies, Mixes]),
    (Fault::Slow, &[Refuses, Reruns, Proxies, Mixes]),
    (
        Fault::Clocks,
        &[Refuses, Reruns, Unknown, WrongClocks, Mixes],
    ),
    (Fault::Descriptors, &[Refuses, Reruns, Mixes]),
    (Fault::Stderr, &[Refuses, Reruns, Unknown, Mixes]),
    (Fault::RefusingWorker, &[Reruns, Mixes]),
    (Fault::RedisRestart, &[Refuses, Reruns, Mixes]),
    (Fault::RedisWipe, &[Refuses, Reruns]),
    (Fault::FullRedis, &[Refuses, Mixes]),
    (Fault::FullDisk, &[Refuses, Reruns, Mixes]),
    (Fault::Sentinel, &[Refuses, Reruns, LosesWrites]),
    (Fault::RedisCluster, &[Refuses, Reruns, LosesWrites]),
    (Fault::StartingEdges, &[Refuses, Mixes]),
    (Fault::DrainingEdges, &[Refuses, Unknown, ShortDrains]),
    (Fault::Returning, &[Refuses]),
    (Fault::WithoutIds, &[Refuses, Reruns]),
    (Fault::Rolling, &[Mixes]),
    (Fault::Mixed, &[Refuses, Reruns, Unknown, Proxies]),
];

impl Fault {
    /// Returns every fault but [`Fault::None`], the mixed one last.
    #[must_use]
    pub fn all() -> Vec<Self> {
        KINDS.iter().map(|(fault, _)| *fault).collect()
    }

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(super) fn mixed() -> Vec<Self> {
        let all = Self::all().into_iter();
        all.filter(|fault| fault.has(Mixes)).collect()
    }

    pub(super) fn needs_proxies(self) -> bool {
        self.has(Proxies)
    }

    pub(super) fn needs_wrong_clocks(self) -> bool {
        self.has(WrongClocks)
    }

    pub(super) fn needs_split_pools(self) -> bool {
        self.has(SplitPools)
    }

    pub(super) fn needs_short_calls(self) -> bool {
        self.has(ShortCalls)
    }

    pub(super) fn needs_short_drains(self) -> bool {
        self.has(ShortDrains)
    }

    pub(super) fn needs_late_pings(self) -> bool {
        self.has(LatePings)
    }

    pub(super) fn keeps_owners(self) -> bool {
        self.has(KeepsOwners)
    }

    pub(super) fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Returning => &returning::SETTINGS,
            Self::WithoutIds => &without_ids::SETTINGS,
            _ => &[],
        }
    }

    /// The excuses for the checks. Killed edges and lost data are excused by their times.
    pub(super) fn rules(self) -> Rules {
        Rules {
            outcome_unknown: self.has(Unknown),
            reruns: self.has(Reruns),
            // A rollout must not fail requests.
            not_executed: self.has(Refuses),
            ..Rules::default()
        }
    }

    fn has(self, wanted: Trait) -> bool {
        let traits = KINDS.iter().find(|(fault, _)| *fault == self);
        traits.is_some_and(|(_, traits)| traits.contains(&wanted))
    }
}
