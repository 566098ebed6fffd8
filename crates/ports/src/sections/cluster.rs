use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Period, listen_address, settings};

/// The newest version of the protocol between processes.
pub const NEWEST_PROTOCOL: u32 = 6;

settings! {
    /// How the processes of a cluster find and reach one another.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    #[schemars(rename = "Cluster")]
    pub struct ClusterSettings {
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
        pub protocol: u32 = NEWEST_PROTOCOL,
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

settings! {
    /// The certificates that the processes of a cluster show one another ([TLS](tls.md)).
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct ClusterTls {
        /// PEM file: certificate (server auth and client auth), then intermediates.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub certificate: Option<PathBuf> = None,
        /// PEM file: unencrypted private key.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub key: Option<PathBuf> = None,
        /// PEM file: authorities of the cluster's certificates.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub authority: Option<PathBuf> = None,
        /// DNS name that only this cluster's certificates carry. It need not resolve.
        pub name: String = "shoal".to_owned(),
        /// How often Shoal rereads the TLS files. Shoal ignores unusable changes.
        pub reread: Period = Period::seconds(30),
        /// Also accepts and dials plaintext, while you turn TLS on or off.
        pub allow_plaintext: bool = false,
    }
}
