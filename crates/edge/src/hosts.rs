//! Checks requested hosts, because a foreign page can make a browser send requests here under the
//! page's own name (DNS rebinding).

use std::net::IpAddr;

/// The host names that clients may use.
#[derive(Clone, Debug)]
pub struct Hosts {
    names: Vec<String>,
    addresses: bool,
}

/// Why the edge accepts a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Welcome {
    /// A loopback name.
    Local,
    /// A name that the operator listed.
    Listed,
    /// A host that a wildcard or the permission for addresses admits.
    Any,
}

impl Hosts {
    /// Reads names with or without port; `*` allows any. `addresses` allows every IP address,
    /// because a rebound page's requests name a host.
    pub fn new(names: &[String], addresses: bool) -> Self {
        Self {
            names: names.to_vec(),
            addresses,
        }
    }

    /// Returns why a host is allowed, if it is.
    pub fn admit(&self, host: &str) -> Option<Welcome> {
        let name = without_port(host);
        let address = address(name);
        if is_loopback(name, address) {
            return Some(Welcome::Local);
        }
        let is_listed = |listed: &String| {
            listed.eq_ignore_ascii_case(host) || listed.eq_ignore_ascii_case(name)
        };
        if self.names.iter().any(is_listed) {
            return Some(Welcome::Listed);
        }
        let any = self.addresses && address.is_some() || self.names.iter().any(|name| name == "*");
        any.then_some(Welcome::Any)
    }
}

pub(crate) fn is_local(host: &str) -> bool {
    let name = without_port(host);
    is_loopback(name, address(name))
}

/// `example.com:8080` becomes `example.com`, and `[::1]:8080` becomes `[::1]`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_loopback(name: &str, address: Option<IpAddr>) -> bool {
    name.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
}

fn address(name: &str) -> Option<IpAddr> {
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    bare.unwrap_or(name).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::Hosts;

    fn allows(addresses: bool, hosts: &[&str], host: &str) -> bool {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        Hosts::new(&hosts, addresses).admit(host).is_some()
    }

    #[test]
    fn loopback_names_always_pass() {
        for host in ["localhost", "localhost:8081", "127.0.0.1:1", "[::1]:8081"] {
            assert!(allows(false, &[], host), "{host}");
        }
    }

    #[test]
    fn a_name_that_could_be_rebound_does_not() {
        for host in ["evil.example", "evil.example:8081", "", "localhost.evil"] {
            assert!(!allows(false, &[], host), "{host}");
            assert!(!allows(true, &[], host), "{host}");
        }
        assert!(!allows(false, &[], "10.0.0.1:8081"));
    }

    #[test]
    fn probes_come_by_address_and_operators_by_listed_names() {
        assert!(allows(true, &[], "10.0.0.1:8081"));
        assert!(allows(false, &["Shoal.internal"], "shoal.internal:1"));
        assert!(allows(false, &["*"], "anything"));
    }
}
