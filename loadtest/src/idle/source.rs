//! One address has only about 28,000 ports for connections to one server.

use std::net::{IpAddr, Ipv4Addr};

const PER_ADDRESS: usize = 4_000;

/// `None` for IPv6, which has only one loopback address. The first address is left for the calls.
pub(super) fn address(number: usize, server: IpAddr) -> Option<IpAddr> {
    if !server.is_ipv4() {
        return None;
    }
    let host = 2 + number / PER_ADDRESS;
    let [.., third, fourth] = u32::try_from(host).ok()?.to_be_bytes();
    Some(Ipv4Addr::new(127, 0, third, fourth).into())
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_change_before_their_ports_are_used_up() {
        let server = "127.0.0.1".parse().unwrap();
        let at = |number| address(number, server).unwrap().to_string();
        assert_eq!(at(0), "127.0.0.2");
        assert_eq!(at(4_000), "127.0.0.3");
        assert_eq!(at(4_000 * 254), "127.0.1.0");
        assert_eq!(address(0, "::1".parse().unwrap()), None);
    }
}
