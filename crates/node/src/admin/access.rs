//! By which names the admin port may be reached.

use std::net::{IpAddr, SocketAddr};

/// The names in `Host` that pass.
pub(super) struct Access {
    any: bool,
    addresses: bool,
    hosts: Vec<String>,
}

impl Access {
    pub(super) fn new(listen: SocketAddr, hosts: &[String]) -> Self {
        Self {
            any: hosts.iter().any(|host| host == "*"),
            addresses: !listen.ip().is_loopback(),
            hosts: hosts.to_vec(),
        }
    }

    pub(super) fn allows(&self, host: &str) -> bool {
        let name = without_port(host);
        let address = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .unwrap_or(name)
            .parse::<IpAddr>();
        let listed = |allowed: &String| {
            allowed.eq_ignore_ascii_case(host) || allowed.eq_ignore_ascii_case(name)
        };
        self.any
            || name.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| self.addresses || address.is_loopback())
            || self.hosts.iter().any(listed)
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::Access;

    fn allows(listen: &str, hosts: &[&str], host: &str) -> bool {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        Access::new(listen.parse().unwrap(), &hosts).allows(host)
    }

    #[test]
    fn loopback_names_always_pass() {
        for host in ["localhost", "localhost:8081", "127.0.0.1:1", "[::1]:8081"] {
            assert!(allows("127.0.0.1:8081", &[], host), "{host}");
        }
    }

    #[test]
    fn a_name_that_could_be_rebound_does_not() {
        for host in ["evil.example", "evil.example:8081", "", "localhost.evil"] {
            assert!(!allows("127.0.0.1:8081", &[], host), "{host}");
            assert!(!allows("0.0.0.0:8081", &[], host), "{host}");
        }
        assert!(!allows("127.0.0.1:8081", &[], "10.0.0.1:8081"));
    }

    #[test]
    fn probes_come_by_address_and_operators_by_listed_names() {
        assert!(allows("0.0.0.0:8081", &[], "10.0.0.1:8081"));
        assert!(allows(
            "127.0.0.1:1",
            &["Shoal.internal"],
            "shoal.internal:1"
        ));
        assert!(allows("127.0.0.1:1", &["*"], "anything"));
    }
}
