use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_controller::KubernetesConfig;
use shoal_ports::settings;

settings! {
    /// Pools of discovered servers ([servers of Kubernetes](kubernetes-servers.md)).
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Discovery {
        /// Watched TOML file, perhaps missing, with at most 2000 more `[pools.<name>]`: only `backend.http` with `url`
        /// and a `headers_file` in its directory. Your configuration's pools win. Shoal leaves out unusable pools.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub file: Option<PathBuf> = None,
        /// Settings of `shoal controller`.
        pub kubernetes: KubernetesConfig = KubernetesConfig::default(),
    }
}
