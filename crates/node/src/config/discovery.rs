use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::kubernetes::KubernetesSettings;
use shoal_ports::settings;

settings! {
    /// Pools of discovered servers ([servers of Kubernetes](kubernetes-servers.md)).
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Discovery {
        /// TOML file with at most 2000 more `[pools.<name>]`. Shoal watches the file, which may be missing. Its pools'
        /// `backend` may have only `http.url`, and `http.headers_file` in the same directory. Your configuration's
        /// pools win.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub file: Option<PathBuf> = None,
        /// Settings of `shoal controller`.
        pub kubernetes: KubernetesSettings = KubernetesSettings::default(),
    }
}
