use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{Network, settings};

settings! {
    /// Where Shoal may send requests ([more](backends.md#where-requests-may-go)).
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    #[schemars(rename = "Outbound")]
    pub struct OutboundConfig {
        /// Networks that Shoal may send requests to, whoever names the host, such as `["10.0.0.0/8", "fd00::/8"]`.
        pub allow: Vec<String> = Vec::new(),
        /// Lets hosts that your configuration names have private and loopback addresses. If false, list their networks
        /// in `allow`, or write addresses instead of names.
        pub named_may_be_private: bool = true,
        /// Uses the proxies in `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`. Shoal then checks only hosts written as
        /// addresses.
        pub proxy_from_environment: bool = false,
    }
}

impl OutboundConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// An entry of `allow` is invalid.
    pub fn check(&self) -> Result<(), String> {
        self.networks().map(drop)
    }

    /// Whether `allow` contains the address; `false` if an entry is invalid.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        let networks = self.networks().unwrap_or_default();
        networks.iter().any(|network| network.holds(address))
    }

    pub(crate) fn networks(&self) -> Result<Vec<Network>, String> {
        Network::parse_all(&self.allow)
    }
}
