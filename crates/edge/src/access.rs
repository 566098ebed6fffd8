//! Which Host and Origin headers are welcome (DNS rebinding, cross-site requests).

use http::request::Parts;
use http::{HeaderValue, header};
use shoal_protocol::shown;

use crate::config::EdgeConfig;
use crate::hosts::{Hosts, is_local};
use crate::refusal::Refusal;

/// Characters of a header that are shown: enough to find it again.
const EXCERPT: usize = 128;

/// The operator's allow-lists.
pub(crate) struct Access {
    hosts: Hosts,
    origins: Vec<String>,
}

impl Access {
    pub(crate) fn new(config: &EdgeConfig) -> Self {
        Self {
            hosts: Hosts::new(&config.allowed_hosts, false),
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
        let admitted = self.hosts.admit(host);
        admitted.ok_or_else(|| Refusal::ForeignHost(shown(host, EXCERPT)))
    }

    fn origin(&self, origin: &HeaderValue, local_host: bool) -> Result<(), Refusal> {
        let text = origin.to_str().unwrap_or_default();
        let page = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"));
        let local = local_host && page.is_some_and(is_local);
        let listed = |allowed: &String| allowed == "*" || allowed.eq_ignore_ascii_case(text);
        if local || self.origins.iter().any(listed) {
            Ok(())
        } else {
            Err(Refusal::ForeignOrigin(shown(text, EXCERPT)))
        }
    }
}

#[cfg(test)]
mod tests;
