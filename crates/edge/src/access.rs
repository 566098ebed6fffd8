//! Which Host and Origin headers are welcome (DNS rebinding, cross-site requests).

use std::net::IpAddr;

use http::request::Parts;
use http::{HeaderValue, header};
use shoal_protocol::shown;

use crate::config::EdgeConfig;
use crate::refusal::Refusal;

const ANY: &str = "*";
/// Characters of a header that are shown: enough to find it again.
const EXCERPT: usize = 128;

/// The operator's allow-lists.
pub(crate) struct Access {
    hosts: Vec<String>,
    any_host: bool,
    origins: Vec<String>,
    any_origin: bool,
}

impl Access {
    pub(crate) fn new(config: &EdgeConfig) -> Self {
        Self {
            any_host: config.allowed_hosts.iter().any(|host| host == ANY),
            hosts: config.allowed_hosts.clone(),
            any_origin: config.allowed_origins.iter().any(|origin| origin == ANY),
            origins: config.allowed_origins.clone(),
        }
    }

    /// Checks both headers, and returns the origin if there is one: its page may read the answer.
    pub(crate) fn check(&self, head: &Parts) -> Result<Option<HeaderValue>, Refusal> {
        let host = head.headers.get(header::HOST);
        let authority = head.uri.authority().map(|authority| authority.as_str());
        let named = host.map(|host| host.to_str().unwrap_or_default());
        // An HTTP/2 request names its host in the URI; one that names two must be welcome as both.
        let mut local = true;
        for name in [named, authority].into_iter().flatten() {
            local &= self.host(name)?;
        }
        if named.or(authority).is_none() {
            local = self.host("")?;
        }
        let Some(origin) = head.headers.get(header::ORIGIN) else {
            return Ok(None);
        };
        self.origin(origin, local).map(|()| Some(origin.clone()))
    }

    /// Whether the host is a loopback name.
    fn host(&self, host: &str) -> Result<bool, Refusal> {
        let name = without_port(host);
        let local = is_loopback(name);
        let listed = |allowed: &String| {
            allowed.eq_ignore_ascii_case(host) || allowed.eq_ignore_ascii_case(name)
        };
        if local || self.any_host || self.hosts.iter().any(listed) {
            Ok(local)
        } else {
            Err(Refusal::ForeignHost(shown(host, EXCERPT)))
        }
    }

    fn origin(&self, origin: &HeaderValue, local_host: bool) -> Result<(), Refusal> {
        let text = origin.to_str().unwrap_or_default();
        let page = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"));
        let local = local_host && page.is_some_and(|page| is_loopback(without_port(page)));
        let listed = |allowed: &String| allowed.eq_ignore_ascii_case(text);
        if local || self.any_origin || self.origins.iter().any(listed) {
            Ok(())
        } else {
            Err(Refusal::ForeignOrigin(shown(text, EXCERPT)))
        }
    }
}

/// `example.com` of `example.com:8080`, `[::1]` of `[::1]:8080`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_loopback(name: &str) -> bool {
    let address = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests;
