//! `[cluster]`: how the processes of a cluster find and reach one another.

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
        /// Address and port for the other processes (gRPC): workers join here, and edges reach sessions.
        /// Port 0 takes a free one, which a line of output names. Unset, nobody can join this process.
        #[schemars(with = "Option<String>", extend("format" = listen_address::FORMAT))]
        #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "listen_address::read_some")]
        pub listen: Option<SocketAddr> = None,
        /// The `host:port` that other processes dial to reach this one. If unset, it is the address that this process
        /// listens on, which must then not be `0.0.0.0` or `[::]`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub advertise: Option<String> = None,
        /// Addresses (`host:port`) of edge or session nodes that the workers of this process join. Any will do:
        /// workers learn the others' addresses from them. A process with workers alone needs at least one.
        pub join: Vec<String> = Vec::new(),
        /// The highest version of the contract between processes that this one speaks. While a release
        /// rolls out that raises it, processes of both speak the lower one; pin it to go back safely.
        pub protocol: u32 = LinkConfig::default().max_version,
        /// For how long after its start an edge or session node that others can join refuses an unknown tool, prompt
        /// or resource as safe to send again: workers may still be joining. The time ends sooner if every pool has
        /// come that other nodes know, or knew. The node waits for such a pool as long as a pool that has left stays
        /// listed (`pools.<name>.linger`).
        pub learning: Period = Period::seconds(5),
        /// How long a request waits for its session's next owner before it is refused.
        pub patience: Period = Period::seconds(30),
        /// How long a running call waits for the connection to its worker to come back. Then it is given up. Shoal gives it up
        /// at once if the worker's process has died and its machine says so.
        pub rejoin: Period = Period::seconds(5),
        /// Port at which a process with workers shows that it lives. Nodes that the process has joined connect to it, at the
        /// address that the process dials them from, when they lose the process. The port sends a random number and takes
        /// nothing. 0 takes a free port. A firewall in between may drop connections to it: then a call waits `rejoin` for the
        /// worker of a process that has died.
        pub presence_port: u16 = 0,
        /// How long a connection to another process may be silent before it counts as broken.
        pub silence: Period = Period::seconds(4),
        /// Lets this process listen for others without TLS on more than loopback: whoever reaches `listen` can then do whatever a
        /// node or a worker can. Only for a network that nobody else reaches.
        pub insecure: bool = false,
        /// The certificates that the processes show one another.
        pub tls: ClusterTls = ClusterTls::default(),
    }
}

impl Cluster {
    /// The address where processes of other machines may come without TLS, if there is one.
    pub(super) fn plaintext_to_others(&self) -> Option<SocketAddr> {
        let address = self.listen.filter(|address| !address.ip().is_loopback())?;
        // Half a table is told of by its own rule.
        matches!(self.tls.files(), Ok(None)).then_some(address)
    }
}
