use clap::ValueEnum;

use self::Trait::{
    KeepsOwners, LatePings, Mixes, Proxies, Refuses, Reruns, ShortCalls, ShortDrains, SplitPools,
    Unknown, WrongClocks,
};
use super::inject::{returning, without_ids};
use crate::check::Rules;

/// The fault of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum)]
pub enum Fault {
    /// No fault.
    #[default]
    None,
    /// Edges are killed.
    Edge,
    /// Session nodes are killed.
    Session,
    /// Workers are killed.
    Worker,
    /// A process of one role and a process of another are killed at the same time.
    TwoRoles,
    /// Every second a member of the next role is killed, while most calls take 1 to 10 ms.
    Churn,
    /// All session nodes are killed at the same time, and return while some workers cannot reach them.
    NoSessionNodes,
    /// Session nodes are paused for longer than their lease.
    Pause,
    /// A session node's messages to workers are delayed, and arrive while the node is paused for longer than its lease.
    LateStarts,
    /// Session nodes are paused for longer than connections may be silent, but shorter than their lease.
    ShortPause,
    /// Edges are paused.
    PauseEdge,
    /// Workers are paused.
    PauseWorker,
    /// Redis is paused.
    PauseRedis,
    /// The connection between edges and a session node is cut or silent.
    CutEdgeSession,
    /// The connection between session nodes and a worker is cut or silent.
    CutSessionWorker,
    /// Connections between edges and session nodes, and of workers, are reset several times a second.
    Resets,
    /// The connection between a node, or all nodes, and Redis is cut or silent.
    CutRedis,
    /// Messages between two members pass in only one direction.
    OneWay,
    /// Messages between two members, or between a member and Redis, are delayed or limited to little data a second.
    Slow,
    /// The clocks of all members are wrong. Members of each role are killed, and return with a different wrong clock.
    Clocks,
    /// Members of each role cannot open files or connections for a while.
    Descriptors,
    /// Members of each role are killed, and return with a standard error that has no reader.
    Stderr,
    /// A worker is restarted, and has little capacity for a while.
    RefusingWorker,
    /// Redis is killed and returns with its data.
    RedisRestart,
    /// Redis is killed and returns without its data.
    RedisWipe,
    /// Redis has no free memory for a while.
    FullRedis,
    /// Redis cannot write to its disk, for a while.
    FullDisk,
    /// Sentinel promotes a replica that has all writes, or misses the newest.
    Sentinel,
    /// In a Redis Cluster, a replica replaces its master, which cooperates or was killed.
    RedisCluster,
    /// An edge is killed, and returns while clients listen there from its first moment. Then a list changes.
    StartingEdges,
    /// An edge is restarted gracefully while clients call it during its whole drain.
    DrainingEdges,
    /// Sessions that are about to expire are all used again at the same time, while their nodes sweep and Redis is
    /// repeatedly paused for longer than the command timeout.
    Returning,
    /// WebSocket clients return without event ids to sessions whose oldest events are gone, while session nodes are
    /// killed.
    WithoutIds,
    /// All members are restarted gracefully, one after the other.
    Rolling,
    /// Random faults of this list, except those that lose data, on one Redis.
    Mixed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trait {
    Proxies,
    WrongClocks,
    /// Needs pools that only some workers serve.
    SplitPools,
    Unknown,
    /// Excuses a second run of a repeatable call.
    Reruns,
    Refuses,
    ShortCalls,
    ShortDrains,
    /// Workers must tolerate connections that are silent for longer than a lease.
    LatePings,
    /// No session may change its owner, because every node is reachable.
    KeepsOwners,
    Mixes,
}

impl Trait {
    fn of(fault: Fault) -> &'static [Self] {
        match fault {
            Fault::None => &[],
            Fault::Edge | Fault::PauseEdge | Fault::PauseRedis => &[Refuses, Mixes],
            Fault::FullRedis | Fault::StartingEdges => &[Refuses, Mixes],
            Fault::Session | Fault::Pause | Fault::ShortPause => &[Refuses, Reruns, Mixes],
            Fault::Descriptors | Fault::RedisRestart | Fault::FullDisk => &[Refuses, Reruns, Mixes],
            Fault::Worker | Fault::TwoRoles | Fault::PauseWorker | Fault::Stderr => {
                &[Refuses, Reruns, Unknown, Mixes]
            }
            Fault::Churn => &[Refuses, Reruns, Unknown, ShortCalls, Mixes],
            // Without a joined worker, the journal entry names none. If the call's owner then dies, the
            // outcome is unknown.
            Fault::NoSessionNodes => &[Refuses, Reruns, Unknown, Proxies, SplitPools, Mixes],
            Fault::LateStarts => &[Refuses, Reruns, Proxies, ShortCalls, LatePings, Mixes],
            Fault::CutEdgeSession => &[Refuses, Proxies, Mixes],
            Fault::CutSessionWorker | Fault::OneWay => &[Refuses, Reruns, Unknown, Proxies, Mixes],
            Fault::Resets => &[Refuses, Reruns, Proxies, KeepsOwners, Mixes],
            Fault::CutRedis | Fault::Slow => &[Refuses, Reruns, Proxies, Mixes],
            Fault::Clocks => &[Refuses, Reruns, Unknown, WrongClocks, Mixes],
            Fault::RefusingWorker => &[Reruns, Mixes],
            Fault::RedisWipe | Fault::Sentinel | Fault::RedisCluster | Fault::WithoutIds => {
                &[Refuses, Reruns]
            }
            Fault::DrainingEdges => &[Refuses, Unknown, ShortDrains],
            Fault::Returning => &[Refuses],
            // A rollout must not fail requests.
            Fault::Rolling => &[Mixes],
            Fault::Mixed => &[Refuses, Reruns, Unknown, Proxies],
        }
    }
}

impl Fault {
    /// Returns every fault but [`Fault::None`], the mixed one last.
    #[must_use]
    pub fn all() -> Vec<Self> {
        Self::value_variants()[1..].to_vec()
    }

    /// Returns the fault's name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(super) fn mixed() -> Vec<Self> {
        let all = Self::all().into_iter();
        all.filter(|fault| fault.has(Mixes)).collect()
    }

    pub(super) fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Returning => &returning::SETTINGS,
            Self::WithoutIds => &without_ids::SETTINGS,
            _ => &[],
        }
    }

    /// The run adds the times of kills and data losses, which excuse more.
    pub(super) fn rules(self) -> Rules {
        Rules {
            outcome_unknown: self.has(Unknown),
            reruns: self.has(Reruns),
            not_executed: self.has(Refuses),
            ..Rules::default()
        }
    }

    pub(super) fn has(self, wanted: Trait) -> bool {
        Trait::of(self).contains(&wanted)
    }
}
