//! A network in `allow`.

use std::net::IpAddr;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    first: IpAddr,
    length: u32,
}

impl Network {
    /// An IPv4-mapped address counts as IPv4.
    pub(crate) fn holds(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let differs = first.to_bits() ^ address.to_bits();
                differs.checked_shr(32 - self.length).unwrap_or(0) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let differs = first.to_bits() ^ address.to_bits();
                differs.checked_shr(128 - self.length).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = ();

    /// Parses `address/length`. Bits beyond the prefix must be zero, because `10.1.2.3/8` is
    /// probably a mistake.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let first: IpAddr = address.parse().map_err(drop)?;
        let most = if first.is_ipv4() { 32 } else { 128 };
        let length = match length {
            Some(length) => length.parse().ok().filter(|length| *length <= most),
            None => Some(most),
        };
        let length: u32 = length.ok_or(())?;
        let beyond = match first {
            IpAddr::V4(first) => first.to_bits().checked_shl(length).unwrap_or(0) != 0,
            IpAddr::V6(first) => first.to_bits().checked_shl(length).unwrap_or(0) != 0,
        };
        // IPv4-mapped addresses count as IPv4, so a network of them would be empty.
        let mapped = first.to_canonical() != first;
        match beyond || mapped {
            true => Err(()),
            false => Ok(Self { first, length }),
        }
    }
}
