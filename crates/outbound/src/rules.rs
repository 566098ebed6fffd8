//! Which addresses may be reached.

use std::net::IpAddr;

use crate::address::Kind;
use crate::config::OutboundConfig;
use crate::network::Network;

/// Who chose a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChosenBy {
    /// The operator, in the configuration or on the command line.
    Operator,
    /// Anybody else.
    Others,
}

/// Which addresses may be reached.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    allow: Vec<Network>,
    named_may_be_private: bool,
}

/// A target that may not be reached. Which address a name has is not told: whoever made Shoal ask could learn it from that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{host} has an address that Shoal does not connect to ({kind}); outbound.allow can name its network"
)]
pub(crate) struct Refused {
    pub(crate) host: String,
    pub(crate) kind: &'static str,
}

impl Rules {
    pub(crate) fn new(config: &OutboundConfig) -> Result<Self, String> {
        Ok(Self {
            allow: config.networks()?,
            named_may_be_private: config.named_may_be_private,
        })
    }

    /// What keeps an address of a target from being reached, if anything does.
    pub(crate) fn against(&self, address: IpAddr, chosen: ChosenBy) -> Option<Kind> {
        let kind = Kind::of(address);
        let fine = match (kind, chosen) {
            (Kind::Public, _) => true,
            // Who has the name could point it at what only this machine may read: no server of an operator is there.
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
