use std::net::IpAddr;

use shoal_ports::Network;

use crate::address::Kind;
use crate::config::OutboundConfig;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChosenBy {
    /// In the configuration or on the command line.
    Operator,
    Others,
}

#[derive(Clone, Debug)]
pub(crate) struct AddressRules {
    allow: Vec<Network>,
    named_may_be_private: bool,
}

/// Omits the addresses of a host name, which callers must not learn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{host} has an address that Shoal does not connect to ({kind}); outbound.allow can name its network"
)]
pub(crate) struct RefusedAddress {
    pub(crate) host: String,
    pub(crate) kind: &'static str,
}

impl AddressRules {
    pub(crate) fn new(config: &OutboundConfig) -> Result<Self, String> {
        Ok(Self {
            allow: config.networks()?,
            named_may_be_private: config.named_may_be_private,
        })
    }

    pub(crate) fn against(&self, address: IpAddr, chosen: ChosenBy) -> Option<Kind> {
        let kind = Kind::of(address);
        let fine = match (kind, chosen) {
            (Kind::Public, _) => true,
            // The owner of a name could point the name at data that only this machine may read.
            (Kind::LinkLocal | Kind::Metadata | Kind::Unspecified | Kind::Multicast, _) => false,
            (Kind::Private | Kind::Loopback | Kind::Reserved, ChosenBy::Operator) => {
                self.named_may_be_private
            }
            (_, ChosenBy::Others) => false,
        };
        let allowed = || self.allow.iter().any(|network| network.holds(address));
        (!fine && !allowed()).then_some(kind)
    }
}
