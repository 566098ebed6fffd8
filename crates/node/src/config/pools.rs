use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_dispatch::{
    Affinity, ArgumentPolicy, DurabilityPolicy as Durability, MethodRules,
    PoolConfig as Dispatched, PromptRules, ResourceRules, ScaleToZero, ToolRules,
};
use shoal_ports::settings;
use shoal_worker::{HttpConfig, OpenApiConfig, PoolConfig as Run, StdioConfig};

use super::Period;

settings! {
    /// Equal workers for the same tools, resources and prompts.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with backend")]
    #[schemars(extend("required" = ["backend"]))]
    pub struct Pool {
        /// Server that runs the calls: one of the tables `stdio`, `http` and `openapi` below, or:
        #[serde(skip_serializing_if = "Backend::is_unset")]
        pub backend: Backend = Backend::default(),
        /// Maximum concurrent calls of each worker.
        pub concurrency: usize = Run::default().concurrency,
        /// Maximum concurrent calls of one principal at each worker; 0 is unlimited.
        pub concurrency_per_principal: usize = Run::default().concurrency_per_principal,
        /// Maximum calls that wait at each worker. Principals take turns. If the queue is full, Shoal refuses the
        /// newest call of the principal with the most waiting calls.
        pub queue: usize = Run::default().queue,
        /// Maximum calls that wait for clients' answers, at each worker. Stdio
        /// [processes](stdio-servers.md#how-many-processes) limit them too.
        pub asking: usize = Run::default().asking,
        /// For each principal: maximum calls that wait for clients' answers.
        pub asking_per_principal: usize = Run::default().asking_per_principal,
        /// How long a call may wait in the queue, or for a server that is away. A call that waits for
        /// a free stdio process waits until its deadline instead. If a call would probably wait too long in the queue,
        /// Shoal refuses it at once.
        pub queue_age: Period = Run::default().queue_age.into(),
        /// Prefix of tool and prompt names, to avoid clashes. Shoal shortens tool names over 64 characters.
        pub prefix: String = String::new(),
        /// Tools that the pool offers, by the backend's names. Edges and session nodes apply these settings.
        pub tools: ToolRules = ToolRules::default(),
        /// Prompts that the pool offers, by the backend's names.
        pub prompts: PromptRules = PromptRules::default(),
        /// Resources that the pool offers.
        pub resources: ResourceRules = ResourceRules::default(),
        /// Methods of extensions that the pool offers ([backends](backends.md#extensions)).
        pub methods: MethodRules = MethodRules::default(),
        /// Tool calls that Shoal journals, so that each runs once.
        pub durability: Durability = Durability::default(),
        /// Tools and extension methods, by the backend's names, that are safe to repeat despite `durability`.
        pub repeatable: Vec<String> = Vec::new(),
        /// Tools and extension methods, by the backend's names, that must not run twice, despite other settings.
        pub journaled: Vec<String> = Vec::new(),
        /// How long Shoal [holds](backends.md#the-hold) this pool's calls; by default `streams.hold`.
        pub hold: Option<Period> = None,
        /// How Shoal treats [arguments that do not match](backends.md#arguments-that-do-not-match) the tool's schema.
        pub arguments: ArgumentPolicy = ArgumentPolicy::default(),
        /// Calls that go to the same worker while it accepts calls. With `{ key = "argument" }`, these are calls with
        /// the same value of this argument.
        pub affinity: Affinity = Affinity::default(),
        /// How long the pool's tools stay listed without workers.
        pub linger: Period = Dispatched::default().linger.into(),
        /// Lets the pool have no workers until a call comes. Its tools stay listed ([scaling to
        /// zero](scaling.md#scaling-to-zero)).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub scale_to_zero: Option<ScaleToZero> = None,
        /// How long a tool may continue after Shoal told it to stop.
        pub cancel_grace: Period = Run::default().cancel_grace.into(),
        /// How long workers remember the ids of journaled calls, so that no call runs twice.
        pub call_memory: Period = Run::default().call_memory.into(),
        /// Maximum remembered ids of a worker.
        pub remembered_calls: usize = Run::default().remembered_calls,
        /// How long a worker keeps a journaled call's result, in case the session moves.
        pub result_retention: Period = Run::default().result_retention.into(),
        /// Maximum kept results of a worker.
        pub retained_results: usize = Run::default().retained_results,
        /// Maximum bytes of a worker's kept results.
        pub retained_bytes: usize = Run::default().retained_bytes,
    }
}

/// Server that runs the calls of a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Demo server.
    Demo,
    /// Fixtures of MCP's conformance suite.
    Conformance,
    /// The server in your own program ([Rust](rust.md)). Only workers must run this program.
    Handler,
    /// An MCP server that speaks over its standard input and output.
    Stdio(Box<StdioConfig>),
    /// An MCP server that is reached by a URL.
    Http(Box<HttpConfig>),
    /// A service over HTTP that an OpenAPI document describes.
    OpenApi(Box<OpenApiConfig>),
}

impl Default for Backend {
    /// Returns a placeholder for a backend that is not set yet.
    fn default() -> Self {
        Self::Stdio(Box::default())
    }
}

impl Backend {
    pub(crate) fn is_handler(&self) -> bool {
        matches!(self, Self::Handler)
    }

    pub(super) fn is_unset(&self) -> bool {
        matches!(self, Self::Stdio(stdio) if stdio.command.is_empty())
    }
}

impl Pool {
    /// Creates a pool with defaults.
    pub fn of(backend: Backend) -> Self {
        Self {
            backend,
            ..Self::default()
        }
    }

    /// Creates a worker's settings. `rejoin` is how long its links may be down.
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

    /// Creates the dispatcher's settings.
    pub fn to_dispatch(&self) -> Dispatched {
        Dispatched {
            prefix: self.prefix.clone(),
            tools: self.tools.clone(),
            prompts: self.prompts.clone(),
            resources: self.resources.clone(),
            methods: self.methods.clone(),
            durability: self.durability,
            repeatable: self.repeatable.clone(),
            journaled: self.journaled.clone(),
            hold: self.hold.map(Period::get),
            arguments: self.arguments,
            affinity: self.affinity.clone(),
            linger: self.linger.get(),
            scale_to_zero: self.scale_to_zero.clone(),
        }
    }
}
