//! Resolves names to allowed addresses. A connection uses a checked address, without a second lookup.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::rules::{AddressRules, ChosenBy, RefusedAddress};

/// The future of a lookup.
pub type Looked = BoxFuture<'static, io::Result<Vec<IpAddr>>>;

/// Looks up host names.
pub trait Lookup: Send + Sync {
    /// Returns a name's addresses.
    fn look_up(&self, name: String) -> Looked;
}

pub(crate) struct SystemLookup;

impl Lookup for SystemLookup {
    fn look_up(&self, name: String) -> Looked {
        async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    }
}

pub(crate) struct Checking {
    pub(crate) lookup: Arc<dyn Lookup>,
    pub(crate) rules: Arc<AddressRules>,
    pub(crate) chosen: ChosenBy,
}

impl Resolve for Checking {
    fn resolve(&self, name: Name) -> Resolving {
        let (rules, chosen) = (self.rules.clone(), self.chosen);
        let host = name.as_str().to_owned();
        let looking = self.lookup.look_up(host.clone());
        async move {
            let mut refused = None;
            let mut found = looking.await?;
            found.retain(|&address| match rules.against(address, chosen) {
                Some(kind) => {
                    let kind = kind.as_str();
                    tracing::warn!(target: "shoal::outbound", host, %address, kind, "an address is not connected to");
                    refused = Some(kind);
                    false
                }
                None => true,
            });
            match refused {
                Some(kind) if found.is_empty() => Err(RefusedAddress { host, kind }.into()),
                _ => {
                    let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
                    Ok(Box::new(found) as Addrs)
                }
            }
        }
        .boxed()
    }
}
