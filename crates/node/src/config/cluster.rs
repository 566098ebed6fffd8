//! `[cluster]`: how the processes of a cluster find and reach one another.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use shoal_ports::settings;
use shoal_rpc::LinkConfig;

use super::{ClusterTls, Period};

settings! {
    /// How the processes of a cluster find and reach one another.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Cluster {
        /// Address and port for the other processes (gRPC): workers join here, and edges reach sessions.
        /// Port 0 takes a free one, which a line of output names. Unset, nobody can join this process.
        #[schemars(with = "Option<String>")]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub listen: Option<SocketAddr> = None,
        /// What the others dial to reach this process, as `host:port`; unset, the address that it listens on,
        /// which must then not be `0.0.0.0` or `[::]`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub advertise: Option<String> = None,
        /// Addresses (`host:port`) of any edge or session nodes that the workers of this process join; they
        /// learn of the others from them. Needed where the process has workers alone.
        pub join: Vec<String> = Vec::new(),
        /// The highest version of the contract between processes that this one speaks. While a release
        /// rolls out that raises it, processes of both speak the lower one; pin it to go back safely.
        pub protocol: u32 = LinkConfig::default().max_version,
        /// For how long after its start an edge or session node that others can join refuses what it does not know (a tool,
        /// a prompt, a resource) as safe to send again: workers may be on their way. It ends sooner when every pool has come that
        /// other nodes know, or knew. Until then such a pool is waited for as long as one that has left stays listed
        /// (`pools.<name>.linger`).
        pub learning: Period = Period::seconds(5),
        /// How long a request waits for its session's next owner before it is refused.
        pub patience: Period = Period::seconds(30),
        /// How long a running call waits for the way to its worker to come back before it is given up.
        pub rejoin: Period = Period::seconds(5),
        /// How long a connection to another process may be silent before it counts as broken.
        pub silence: Period = Period::seconds(4),
        /// The certificates that the processes show one another.
        pub tls: ClusterTls = ClusterTls::default(),
    }
}
