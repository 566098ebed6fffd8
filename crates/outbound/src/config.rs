//! The settings for outbound requests.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;

use crate::network::Network;

settings! {
    /// Where Shoal's own requests may go: to servers behind URLs, services with an OpenAPI document, and authorization servers.
    /// Hosts that the configuration names are reached. Hosts that others name must have public addresses
    /// ([more](backends.md#where-requests-may-go)).
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    #[schemars(rename = "Outbound")]
    pub struct OutboundConfig {
        /// Networks that may be reached whoever names a host there, such as `["10.0.0.0/8", "fd00::/8"]`.
        pub allow: Vec<String> = Vec::new(),
        /// Whether hosts that the configuration names may have private and loopback addresses. If not, such a host needs an address in `allow`,
        /// or is named by its address.
        pub named_may_be_private: bool = true,
        /// Whether requests go through the proxies that `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` name. The proxy then decides what
        /// names mean: only hosts that are named by an address are checked.
        pub proxy_from_environment: bool = false,
    }
}

impl OutboundConfig {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// If an entry of `allow` is invalid.
    pub fn check(&self) -> Result<(), String> {
        self.networks().map(drop)
    }

    /// Whether `allow` contains the address. If an entry is invalid, the result is `false`.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        let networks = self.networks().unwrap_or_default();
        networks.iter().any(|network| network.holds(address))
    }

    pub(crate) fn networks(&self) -> Result<Vec<Network>, String> {
        let networks = self.allow.iter().map(|text| {
            text.parse().map_err(|()| {
                format!(
                    "{text:?} is no network: use ADDRESS/LENGTH, such as 10.0.0.0/8 or fd00::/8"
                )
            })
        });
        networks.collect()
    }
}
