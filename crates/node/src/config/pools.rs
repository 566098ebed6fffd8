//! `[pools.<name>]`: what runs the tools.

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
    /// A named set of equal workers that serve one catalog of tools, resources and prompts.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with backend")]
    #[schemars(extend("required" = ["backend"]))]
    pub struct Pool {
        /// What runs the calls: `{ http = { url = "…" } }`, `{ openapi = { document = "…" } }`, `{ stdio = { command = "…" } }`,
        /// `"handler"`, `"demo"` or `"conformance"`.
        #[serde(skip_serializing_if = "Backend::is_unset")]
        pub backend: Backend = Backend::default(),
        /// Calls that run at once.
        pub concurrency: usize = Run::default().concurrency,
        /// Calls of one principal that run at once; 0 for as many as there are places. Without authentication all callers are
        /// one principal.
        pub concurrency_per_principal: usize = Run::default().concurrency_per_principal,
        /// Calls that may wait for a place; more are refused at once. Waiting principals take turns. If the queue is
        /// full, the principal with the most waiting calls makes room for the others.
        pub queue: usize = Run::default().queue,
        /// Calls that may wait for their clients' answers. They take no place meanwhile. Beyond the limit a question
        /// is refused. If each such call has a stdio process of its own, `processes` limits them too
        /// ([stdio servers](stdio-servers.md#how-many-processes)).
        pub asking: usize = Run::default().asking,
        /// The same for one principal.
        pub asking_per_principal: usize = Run::default().asking_per_principal,
        /// How long a call may wait for a place, or for a server that is away, before it is refused. For a process of a stdio
        /// server, it waits until its own deadline. A call is
        /// refused at once if, at the present pace, it would not get its place within three quarters of this time.
        pub queue_age: Period = Run::default().queue_age.into(),
        /// Put before the names of the pool's tools and prompts, as it is, so that two pools cannot clash. If it makes the name of
        /// a tool longer than 64 characters, which APIs of models refuse, Shoal shortens that name.
        pub prefix: String = String::new(),
        /// Which tools are offered, and how. They are named as their backend names them. Edges and session nodes go by these
        /// settings, and by those of prompts and resources.
        pub tools: ToolRules = ToolRules::default(),
        /// Which prompts are offered, and how. They are named as their backend names them.
        pub prompts: PromptRules = PromptRules::default(),
        /// Which resources are offered.
        pub resources: ResourceRules = ResourceRules::default(),
        /// Which methods of its server's extensions are offered ([backends](backends.md#extensions)).
        pub methods: MethodRules = MethodRules::default(),
        /// Which tool calls are journaled, so that Shoal never executes them twice.
        pub durability: Durability = Durability::default(),
        /// Tools, by the backend's name, and methods of extensions that are safe to repeat whatever `durability` says.
        pub repeatable: Vec<String> = Vec::new(),
        /// Tools, by the backend's name, and methods of extensions that are never repeated whatever else is said.
        pub journaled: Vec<String> = Vec::new(),
        /// How long a call that must not run twice is held before it is journaled, in place of `streams.hold`
        /// ([backends](backends.md#the-hold)).
        pub hold: Option<Period> = None,
        /// How Shoal treats arguments that do not match the schema of their tool
        /// ([backends](backends.md#arguments-that-do-not-match)).
        pub arguments: ArgumentPolicy = ArgumentPolicy::default(),
        /// Which calls go to the same worker, as long as that one takes them: `"none"`, `"all"` (for a
        /// server that keeps its state in its process; the other workers stand by), `"session"` (those of one
        /// legacy session, or one principal's modern ones), or `{ key = "argument" }` (those with the same value
        /// of the argument of this name).
        pub affinity: Affinity = Affinity::default(),
        /// How long the pool's tools, prompts and resources stay listed after its last worker has gone. Meanwhile
        /// calls to them are refused as safe to send again.
        pub linger: Period = Dispatched::default().linger.into(),
        /// A pool that may have no worker while nobody calls it: `{}`, or `{ wait = "2m" }`. Edges and session nodes keep listing what it
        /// offers, also after they restart, and a call waits for a worker
        /// ([scaling to zero](scaling.md#scaling-to-zero)).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub scale_to_zero: Option<ScaleToZero> = None,
        /// How long a tool may go on after it was told to stop, before it is dropped.
        pub cancel_grace: Period = Run::default().cancel_grace.into(),
        /// How long the id of a journaled call is remembered, so that it is never run again.
        pub call_memory: Period = Run::default().call_memory.into(),
        /// Ids remembered at most. The worker does not run a journaled call that was bound to it before the oldest of
        /// them came.
        pub remembered_calls: usize = Run::default().remembered_calls,
        /// How long the result of a journaled call is kept for a session that moves to another node.
        pub result_retention: Period = Run::default().result_retention.into(),
        /// Results kept at most.
        pub retained_results: usize = Run::default().retained_results,
        /// Bytes of results kept at most.
        pub retained_bytes: usize = Run::default().retained_bytes,
    }
}

/// What runs the calls of a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The demo server that is built in.
    Demo,
    /// The fixtures that the official conformance suite expects, built in.
    Conformance,
    /// The server that its program brings, written [in Rust](rust.md). Edges and session nodes need no such program.
    Handler,
    /// An MCP server that speaks over its standard input and output.
    Stdio(Box<StdioConfig>),
    /// An MCP server that is reached by a URL.
    Http(Box<HttpConfig>),
    /// A service over HTTP that an OpenAPI document describes.
    OpenApi(Box<OpenApiConfig>),
}

impl Default for Backend {
    /// A server that nobody has named yet.
    fn default() -> Self {
        Self::Stdio(Box::default())
    }
}

impl Backend {
    /// Whether its program brings it.
    pub(crate) fn is_handler(&self) -> bool {
        matches!(self, Self::Handler)
    }

    /// Whether it still has to be named.
    pub(super) fn is_unset(&self) -> bool {
        matches!(self, Self::Stdio(stdio) if stdio.command.is_empty())
    }
}

impl Pool {
    /// A pool with defaults for everything but its backend.
    pub fn of(backend: Backend) -> Self {
        Self {
            backend,
            ..Self::default()
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
