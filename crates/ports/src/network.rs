use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// Bits of `::ffff:` before the IPv4 address.
const MAPPED_PREFIX: u8 = 96;

/// A network such as `10.0.0.0/8`, or one address such as `::1`.
///
/// IPv4-mapped IPv6 addresses count as IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// Parses each text. Fails with a message about the first text that is not a network.
    pub fn parse_all<S: AsRef<str>>(texts: &[S]) -> Result<Vec<Self>, String> {
        texts.iter().map(|text| text.as_ref().parse()).collect()
    }

    /// Whether the network contains the address.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one_address = || text.parse().map(IpAddr::into);
        let Some(network) = text.parse::<IpNet>().or_else(|_| one_address()).ok() else {
            return Err(format!(
                "{text:?} is not a network: write an address such as 192.0.2.1, or ADDRESS/LENGTH such as 10.0.0.0/8 or fd00::/8"
            ));
        };
        let canonical = network.addr().to_canonical();
        if canonical != network.addr() {
            if network.prefix_len() < MAPPED_PREFIX {
                return Err(format!(
                    "{text:?} is an IPv4-mapped network with a length below {MAPPED_PREFIX}: write an IPv4 network such as 10.0.0.0/8"
                ));
            }
            return Err(format!(
                "{text:?} is an IPv4-mapped network: write {}",
                without_mapping(canonical, network.prefix_len())
            ));
        }
        // In `10.1.2.3/8`, the author may mean one address.
        if network.trunc() != network {
            return Err(format!(
                "{text:?} has address bits after its prefix: write {} or {canonical}",
                network.trunc()
            ));
        }
        Ok(Self(network))
    }
}

/// Returns the IPv4 form of an IPv4-mapped network.
fn without_mapping(address: IpAddr, prefix: u8) -> String {
    match IpNet::new(address, prefix - MAPPED_PREFIX) {
        Ok(network) if network.prefix_len() < network.max_prefix_len() => {
            network.trunc().to_string()
        }
        _ => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn a_network_holds_the_addresses_with_its_prefix() {
        let holds = |network: &str, address: &str| {
            let network: Network = network.parse().unwrap();
            network.holds(address.parse().unwrap())
        };
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("10.1.2.3/32", "::ffff:10.1.2.3", "::ffff:10.1.2.4"),
            ("0.0.0.0/0", "8.8.8.8", "::1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::/0", "::1", "127.0.0.1"),
            ("::1", "::1", "::2"),
        ] {
            assert!(holds(network, inside), "{network} {inside}");
            assert!(!holds(network, outside), "{network} {outside}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_network_is_refused_with_what_to_write() {
        for (wrong, remedy) in [
            ("", "10.0.0.0/8"),
            ("proxy", "10.0.0.0/8"),
            ("10.0.0/8", "10.0.0.0/8"),
            ("10.0.0.0/33", "10.0.0.0/8"),
            ("10.0.0.0/-1", "10.0.0.0/8"),
            ("fd00::/129", "fd00::/8"),
            ("10.0.0.1/8", "10.0.0.0/8 or 10.0.0.1"),
            ("fd00::1/8", "fd00::/8 or fd00::1"),
            ("::ffff:10.0.0.0/104", "write 10.0.0.0/8"),
            ("::ffff:10.1.2.3/104", "write 10.0.0.0/8"),
            ("::ffff:0.0.0.0/96", "write 0.0.0.0/0"),
            ("::ffff:10.0.0.0/8", "such as 10.0.0.0/8"),
            ("::ffff:10.0.0.1", "write 10.0.0.1"),
        ] {
            let told = wrong.parse::<Network>().unwrap_err();
            assert!(told.contains(remedy), "{wrong}: {told}");
        }
    }
}
