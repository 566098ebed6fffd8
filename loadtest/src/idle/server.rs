use std::path::Path;

use super::memory::{NamedProcess, Reading};
use super::processes::SHARE;
use crate::servers::cluster::member::Role;
use crate::servers::cluster::redis::Redis;
use crate::servers::cluster::{Cluster, Shape};
use crate::servers::spawned::{Environment, Spawned};

const EDGES: usize = 2;

pub(super) struct Server {
    pub(super) urls: Vec<String>,
    pub(super) processes: Vec<NamedProcess>,
    redis: Option<Redis>,
    _running: Running,
}

enum Running {
    Elsewhere,
    Single { _processes: Vec<Spawned> },
    Several { _cluster: Cluster },
}

impl Server {
    pub(super) fn elsewhere(
        urls: Vec<String>,
        processes: Vec<NamedProcess>,
        redis: Option<String>,
    ) -> Self {
        Self {
            urls,
            processes,
            redis: redis.map(Redis),
            _running: Running::Elsewhere,
        }
    }

    /// Starts as many processes of bare axum as `streams` need.
    pub(super) fn floor(streams: usize) -> anyhow::Result<Self> {
        let started = (0..streams.div_ceil(SHARE).max(1))
            .map(|_| Spawned::own(&["serve-floor"], None))
            .collect::<anyhow::Result<Vec<Spawned>>>()?;
        let named = started
            .iter()
            .zip(1..)
            .map(|(process, number)| NamedProcess {
                name: format!("floor-{number}"),
                pid: process.pid(),
            });
        Ok(Self {
            urls: started.iter().map(|process| process.url.clone()).collect(),
            processes: named.collect(),
            redis: None,
            _running: Running::Single {
                _processes: started,
            },
        })
    }

    pub(super) fn shoal(program: &Path) -> anyhow::Result<Self> {
        let process = Spawned::shoal(program, None, &Environment::new())?;
        Ok(Self {
            urls: vec![process.url.clone()],
            processes: vec![NamedProcess {
                name: "shoal".to_owned(),
                pid: process.pid(),
            }],
            redis: None,
            _running: Running::Single {
                _processes: vec![process],
            },
        })
    }

    pub(super) fn cluster(program: &Path, session_nodes: usize) -> anyhow::Result<Self> {
        let shape = Shape {
            edges: EDGES,
            sessions: session_nodes,
            ..Shape::smallest(&Environment::new())
        };
        let cluster = Cluster::start_as(program, None, &shape)?;
        let members = cluster.members.iter().map(|member| NamedProcess {
            name: member.name.replace(' ', "-"),
            pid: member.pid(),
        });
        let redis = NamedProcess {
            name: "redis".to_owned(),
            pid: cluster.redis_pid(),
        };
        Ok(Self {
            urls: (cluster.of(Role::Edge))
                .map(|edge| edge.url.clone())
                .collect(),
            processes: members.chain([redis]).collect(),
            redis: Some(cluster.redis.clone()),
            _running: Running::Several { _cluster: cluster },
        })
    }

    pub(super) fn memory(&self) -> anyhow::Result<Reading> {
        Reading::take(&self.processes, self.redis.as_ref())
    }

    pub(super) fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = self.processes.iter().map(NamedProcess::kind).collect();
        kinds.dedup();
        kinds
    }
}
