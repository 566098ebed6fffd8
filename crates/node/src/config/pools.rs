//! `[pools.<name>]`: what runs the tools.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_dispatch::{Affinity, DurabilityPolicy as Durability, PoolConfig as Dispatched};
use shoal_worker::PoolConfig as Run;

use super::{Period, Stdio};

/// A named set of equal workers that serve one catalog of tools, resources and prompts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with backend")]
pub struct Pool {
    /// What runs the calls: `"demo"`, `"conformance"`, or `{ stdio = { command = "…" } }`.
    pub backend: Backend,
    /// Calls that run at once.
    #[serde(default = "default::concurrency")]
    pub concurrency: usize,
    /// Calls of one principal that run at once; 0 for as many as there are places. Without authentication all callers are
    /// one principal.
    #[serde(default = "default::concurrency_per_principal")]
    pub concurrency_per_principal: usize,
    /// Calls that may wait for a place; more are refused at once. Principals that wait have their turns one after the
    /// other, and in a full queue whoever has most makes room for the others.
    #[serde(default = "default::queue")]
    pub queue: usize,
    /// Calls that may wait for answers of their clients. They have no place meanwhile. What more calls ask is refused.
    /// Calls that each have a process of a stdio server are bounded by its `processes` too
    /// ([backends](backends.md#how-many-processes)).
    #[serde(default = "default::asking")]
    pub asking: usize,
    /// Calls of one principal that may.
    #[serde(default = "default::asking_per_principal")]
    pub asking_per_principal: usize,
    /// How long a call may wait for a place, or for a process of its server, before it is refused.
    #[serde(default = "default::queue_age")]
    pub queue_age: Period,
    /// Put before the names of the pool's tools and prompts, as it is, so that two pools cannot clash.
    #[serde(default)]
    pub prefix: String,
    /// Which tool calls are journaled, so that Shoal never executes them twice.
    #[serde(default)]
    pub durability: Durability,
    /// Tools, by the backend's name, that are safe to repeat whatever `durability` says.
    #[serde(default)]
    pub repeatable: Vec<String>,
    /// Tools, by the backend's name, that are never repeated whatever else is said.
    #[serde(default)]
    pub journaled: Vec<String>,
    /// Which calls go to the same worker, as long as that one takes them: `"none"`, `"all"` (for a
    /// server that keeps its state in its process; the other workers stand by), `"session"` (those of one
    /// legacy session, or one principal's modern ones), or `{ key = "argument" }` (those with the same value
    /// of the argument of this name).
    #[serde(default)]
    pub affinity: Affinity,
    /// How long what the pool offers stays listed after its last worker has gone; calls are refused as safe
    /// to send again meanwhile.
    #[serde(default = "default::linger")]
    pub linger: Period,
    /// How long a tool may go on after it was told to stop, before it is dropped.
    #[serde(default = "default::cancel_grace")]
    pub cancel_grace: Period,
    /// How long the id of a journaled call is remembered, so that it is never run again.
    #[serde(default = "default::call_memory")]
    pub call_memory: Period,
    /// Ids remembered at most. A journaled call that was bound to the worker before the oldest of them came is not run.
    #[serde(default = "default::remembered_calls")]
    pub remembered_calls: usize,
    /// How long the result of a journaled call is kept for a session that moves to another node.
    #[serde(default = "default::result_retention")]
    pub result_retention: Period,
    /// Results kept at most.
    #[serde(default = "default::retained_results")]
    pub retained_results: usize,
    /// Bytes of results kept at most.
    #[serde(default = "default::retained_bytes")]
    pub retained_bytes: usize,
}

/// What runs the calls of a pool.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The demo server that is built in.
    Demo,
    /// The fixtures that the official conformance suite expects, built in.
    Conformance,
    /// An MCP server that speaks over its standard input and output.
    Stdio(Box<Stdio>),
}

/// The worker's own defaults.
mod default {
    use super::{Dispatched, Period, Run};

    fn worker() -> Run {
        Run::new("")
    }

    pub(super) fn concurrency() -> usize {
        worker().concurrency
    }

    pub(super) fn concurrency_per_principal() -> usize {
        worker().concurrency_per_principal
    }

    pub(super) fn asking() -> usize {
        worker().asking
    }

    pub(super) fn asking_per_principal() -> usize {
        worker().asking_per_principal
    }

    pub(super) fn queue() -> usize {
        worker().queue
    }

    pub(super) fn queue_age() -> Period {
        worker().queue_age.into()
    }

    pub(super) fn linger() -> Period {
        Dispatched::default().linger.into()
    }

    pub(super) fn call_memory() -> Period {
        worker().call_memory.into()
    }

    pub(super) fn remembered_calls() -> usize {
        worker().remembered_calls
    }

    pub(super) fn cancel_grace() -> Period {
        worker().cancel_grace.into()
    }

    pub(super) fn result_retention() -> Period {
        worker().result_retention.into()
    }

    pub(super) fn retained_results() -> usize {
        worker().retained_results
    }

    pub(super) fn retained_bytes() -> usize {
        worker().retained_bytes
    }
}

impl Pool {
    /// A pool with defaults for everything but its backend.
    pub fn of(backend: Backend) -> Self {
        Self {
            backend,
            concurrency: default::concurrency(),
            concurrency_per_principal: default::concurrency_per_principal(),
            queue: default::queue(),
            asking: default::asking(),
            asking_per_principal: default::asking_per_principal(),
            queue_age: default::queue_age(),
            prefix: String::new(),
            durability: Durability::default(),
            repeatable: Vec::new(),
            journaled: Vec::new(),
            affinity: Affinity::default(),
            linger: default::linger(),
            call_memory: default::call_memory(),
            remembered_calls: default::remembered_calls(),
            cancel_grace: default::cancel_grace(),
            result_retention: default::result_retention(),
            retained_results: default::retained_results(),
            retained_bytes: default::retained_bytes(),
        }
    }

    /// What the worker of this pool is built with, where links may be away for `rejoin`.
    pub fn to_worker(&self, name: &str, rejoin: Duration) -> Run {
        Run {
            concurrency: self.concurrency,
            concurrency_per_principal: self.concurrency_per_principal,
            queue: self.queue,
            asking: self.asking,
            asking_per_principal: self.asking_per_principal,
            queue_age: self.queue_age.get(),
            result_retention: self.result_retention.get(),
            retained_results: self.retained_results,
            retained_bytes: self.retained_bytes,
            call_memory: self.call_memory.get(),
            remembered_calls: self.remembered_calls,
            cancel_grace: self.cancel_grace.get(),
            deserted_after: rejoin * 2,
            ..Run::new(name)
        }
    }

    /// What the dispatcher needs to know of this pool.
    pub fn to_dispatch(&self) -> Dispatched {
        Dispatched {
            prefix: self.prefix.clone(),
            durability: self.durability,
            repeatable: self.repeatable.clone(),
            journaled: self.journaled.clone(),
            affinity: self.affinity.clone(),
            linger: self.linger.get(),
        }
    }
}
