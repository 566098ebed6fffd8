mod gather;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr};
use redis::{Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::time::Instant;

pub(crate) use self::gather::CommandGatherer;

use crate::scripts::Script;

/// Sends concurrent commands together.
#[derive(Clone)]
pub(crate) struct RedisLink {
    wire: RedisWire,
    born: Instant,
    /// In microseconds after `born`.
    heard: Arc<AtomicU64>,
}

#[derive(Clone)]
pub(crate) enum RedisWire {
    Server(CommandGatherer),
    Cluster(ClusterConnection),
}

impl RedisLink {
    pub(crate) fn new(wire: RedisWire) -> Self {
        Self {
            wire,
            born: Instant::now(),
            heard: Arc::default(),
        }
    }

    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.wire, RedisWire::Cluster(_))
    }

    pub(crate) fn age(&self) -> Duration {
        self.born.elapsed()
    }

    pub(crate) fn silent_since(&self, moment: Instant) -> bool {
        let asked = micros(moment.saturating_duration_since(self.born));
        self.heard.load(Ordering::Relaxed) < asked
    }

    /// Sends a command to the node that has `key`, or to any node. Sends a script in full if the server does not know
    /// it. If the future is dropped, the command may have been executed.
    pub(crate) async fn ask(
        &mut self,
        key: Option<&str>,
        command: Cmd,
        script: Option<Arc<Script>>,
    ) -> RedisResult<Value> {
        let reply = match &mut self.wire {
            RedisWire::Server(connection) => connection.ask(command, script).await,
            RedisWire::Cluster(connection) => {
                let node = key.map_or(SingleNodeRoutingInfo::RandomPrimary, |key| {
                    SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master))
                });
                let route = RoutingInfo::SingleNode(node);
                let in_full = script.map(|script| (script, command.clone(), route.clone()));
                let reply = connection.route_command(command, route).await;
                match (reply.and_then(Value::extract_error), in_full) {
                    (Err(error), Some((script, command, route))) if is_no_script(&error) => {
                        let command = script.in_full(&command);
                        connection.route_command(command, route).await
                    }
                    (reply, _) => reply,
                }
            }
        };
        let reply = reply.and_then(Value::extract_error);
        if reply
            .as_ref()
            .err()
            .is_none_or(|error| !error.is_io_error())
        {
            let now = micros(self.age());
            self.heard.fetch_max(now, Ordering::Relaxed);
        }
        reply
    }
}

fn is_no_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
