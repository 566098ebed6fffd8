//! An address to listen on, as people write it.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

use serde::de::{Deserializer, Error, Visitor};

/// A setting of this format may also be a number.
pub const FORMAT: &str = "listen-address";

/// Reads an address to listen on: `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, `:8080` or `8080`. Without an IP
/// address, it is on loopback, so that an omission cannot open a port to others.
///
/// # Errors
///
/// The accepted forms.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    let is_here = host.is_empty() || host.eq_ignore_ascii_case("localhost");
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse() {
        Ok(port) if is_here && is_number => Ok((Ipv4Addr::LOCALHOST, port).into()),
        _ => Err(format!(
            "{text:?} is no address to listen on: write IP:PORT, such as 127.0.0.1:8080 (0.0.0.0:8080 is every address of this \
             machine), or localhost:8080, or a port up to 65535 alone, which is on loopback"
        )),
    }
}

/// # Errors
/// As for [`listen_address`], or a value that is no text or number.
pub fn read<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    from.deserialize_any(Written)
}

/// # Errors
/// As for [`read`].
pub fn read_some<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    read(from).map(Some)
}

struct Written;

impl Visitor<'_> for Written {
    type Value = SocketAddr;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address to listen on, such as \"127.0.0.1:8080\", or a port")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SocketAddr, E> {
        listen_address(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, port: i64) -> Result<SocketAddr, E> {
        self.visit_str(&port.to_string())
    }

    fn visit_u64<E: Error>(self, port: u64) -> Result<SocketAddr, E> {
        self.visit_str(&port.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::listen_address;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (text, address) in [
            ("0.0.0.0:8080", "0.0.0.0:8080"),
            ("[::1]:0", "[::1]:0"),
            ("localhost:8080", "127.0.0.1:8080"),
            ("LocalHost:1", "127.0.0.1:1"),
            (":8080", "127.0.0.1:8080"),
            ("8080", "127.0.0.1:8080"),
            ("0", "127.0.0.1:0"),
        ] {
            assert_eq!(listen_address(text).unwrap().to_string(), address, "{text}");
        }
        for text in [
            "",
            ":",
            "localhost",
            "host:80",
            "1.2.3.4",
            "65536",
            ":-1",
            "+80",
            "::1:x",
            "8080:",
        ] {
            let told = listen_address(text).unwrap_err();
            assert!(told.contains("IP:PORT"), "{text}: {told}");
        }
    }
}
