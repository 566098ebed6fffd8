//! Quotas by GCRA: a bucket holds `burst` tokens and regains one every `interval`.

mod config;
mod gcra;
mod rate;

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use async_trait::async_trait;

pub use config::{QuotaConfig, QuotaPer};
pub use gcra::{CellRate, Taken};
pub use rate::Rate;

use crate::{Principal, StoreError};

/// Stores the token buckets that all nodes share. Each engine uses its own clock.
#[async_trait]
pub trait QuotaCells: Send + Sync + 'static {
    /// Takes up to `want` tokens, or refuses if fewer than `need` are left. `need` must not exceed
    /// the burst.
    ///
    /// The rate may change between calls. Tokens taken earlier return within the new rate's fill
    /// time.
    async fn take(
        &self,
        key: &QuotaKey,
        rate: CellRate,
        need: u32,
        want: u32,
    ) -> Result<Taken, StoreError>;

    /// Returns unused tokens, up to the burst.
    async fn give_back(&self, key: &QuotaKey, rate: CellRate, cells: u32)
    -> Result<(), StoreError>;
}

/// Identifies a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuotaKey {
    /// The quota's name.
    pub quota: Arc<str>,
    /// The callers that share the bucket.
    pub subject: QuotaSubject,
}

/// The callers that share a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum QuotaSubject {
    /// All callers.
    Everybody,
    /// Callers from one address; see [`Self::address`].
    Address(IpAddr),
    /// A principal.
    Principal(Principal),
}

impl QuotaSubject {
    /// Returns the subject of an address. An IPv6 /64, the smallest network of a customer, counts
    /// as one address.
    pub fn address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from(network))
            }
            v4 => v4,
        })
    }

    /// Returns the bytes of heap memory.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Principal(principal) => principal.as_str().len(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;
