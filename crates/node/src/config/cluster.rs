use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use shoal_ports::settings;
use shoal_rpc::LinkConfig;

use super::{ClusterTls, Period, listen_address};

settings! {
    /// How the processes of a cluster find and reach one another.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Cluster {
        /// gRPC address and port for other processes. Without it, none can join.
        #[schemars(with = "Option<String>", extend("format" = listen_address::FORMAT))]
        #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "listen_address::read_some")]
        pub listen: Option<SocketAddr> = None,
        /// `host:port` that other processes dial; by default `listen`. Set it if `listen` is `0.0.0.0` or `[::]`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub advertise: Option<String> = None,
        /// Edge or session nodes (`host:port`) that workers join; one is enough.
        pub join: Vec<String> = Vec::new(),
        /// Highest protocol version between processes. Set it before an upgrade if you [may want to go
        /// back](guides/upgrade.md#if-you-may-want-to-go-back).
        pub protocol: u32 = LinkConfig::default().max_version,
        /// How long a new node answers 50301 for unknown tools, prompts and resources. If other nodes know pools, it
        /// answers 50301 until workers of these pools have joined the new node, but at most for the pools' `linger`.
        pub learning: Period = Period::seconds(5),
        /// How long a request waits for its session's next owner.
        pub patience: Period = Period::seconds(30),
        /// How long a running call waits for its worker to reconnect, unless the worker's machine reports the process
        /// dead.
        pub rejoin: Period = Period::seconds(5),
        /// Port where nodes check that a worker's process lives; 0 takes a free port. If a firewall drops packets to
        /// this port, calls of a dead worker wait for `rejoin`.
        pub presence_port: u16 = 0,
        /// Silence after which Shoal closes a connection between processes.
        pub silence: Period = Period::seconds(4),
        /// Allows `listen` beyond loopback without TLS. Every host that reaches it can then act as a node or worker.
        pub insecure: bool = false,
        /// Mutual TLS between processes ([TLS](tls.md)). Without it, connections are plaintext.
        pub tls: ClusterTls = ClusterTls::default(),
    }
}

impl Cluster {
    /// The address that serves other machines without TLS.
    pub(super) fn plaintext_to_others(&self) -> Option<SocketAddr> {
        let address = self.listen.filter(|address| !address.ip().is_loopback())?;
        // Another rule reports an incomplete `cluster.tls`.
        matches!(self.tls.files(), Ok(None)).then_some(address)
    }
}
