//! The seam behind quotas: cells of a rate that all nodes of a cluster share.
//!
//! The algorithm is GCRA: a rate is a bucket of `burst` cells, into which a cell comes back every `interval`.

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

/// Where the cells of quotas are kept. Time passes by the clock of whoever keeps them, and by no other.
#[async_trait]
pub trait QuotaCells: Send + Sync + 'static {
    /// Takes `want` cells, or as many as there are; with fewer than `need`, none. `need` is at most the burst of the rate.
    ///
    /// A rate may change from one call to the next: what was taken stays taken, but never for longer than the new rate's bucket takes
    /// to fill.
    async fn take(
        &self,
        key: &QuotaKey,
        rate: CellRate,
        need: u32,
        want: u32,
    ) -> Result<Taken, StoreError>;

    /// Gives cells back that were taken and not used. The bucket never holds more than its burst.
    async fn give_back(&self, key: &QuotaKey, rate: CellRate, cells: u32)
    -> Result<(), StoreError>;
}

/// A bucket: a quota, and whose.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuotaKey {
    /// The name of the quota.
    pub quota: Arc<str>,
    /// Whose.
    pub subject: QuotaSubject,
}

/// Who shares a bucket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum QuotaSubject {
    /// Everybody.
    Everybody,
    /// Who comes from this address; see [`Self::address`].
    Address(IpAddr),
    /// One principal.
    Principal(Principal),
}

impl QuotaSubject {
    /// Of a client at this address. Of IPv6, a network of 64 bits is one: that is what a customer gets at least, who then has
    /// as many addresses as they like.
    pub fn address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from(network))
            }
            v4 => v4,
        })
    }

    /// Bytes that it takes in memory beyond its own size.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Principal(principal) => principal.as_str().len(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;
