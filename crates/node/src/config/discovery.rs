//! `[discovery]`: pools that are not in the configuration itself.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_controller::KubernetesConfig;
use shoal_ports::settings;

settings! {
    /// Pools of servers that something else finds ([servers of Kubernetes](kubernetes-servers.md)).
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Discovery {
        /// A file with further pools (TOML, `[pools.<name>]` alone), all of servers behind URLs. Of `backend.http`, they have
        /// `url` and `headers_file` alone, the latter in the directory of this file. It may be missing. Shoal watches it, whatever
        /// `reload.watch` says. A pool of the configuration counts before one of the same name in the file. A pool that cannot be used is
        /// left out. Of more than 2000 pools, the first ones by name are taken.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub file: Option<PathBuf> = None,
        /// The settings of `shoal controller`, which makes pools of objects of Kubernetes.
        pub kubernetes: KubernetesConfig = KubernetesConfig::default(),
    }
}
