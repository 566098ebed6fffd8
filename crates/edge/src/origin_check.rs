use http::request::Parts;
use http::{HeaderValue, header};
use shoal_protocol::shown;

use crate::config::EndpointConfig;
use crate::hosts::{Hosts, Welcome, is_local};
use crate::refusal::Refusal;

const EXCERPT: usize = 128;

pub(crate) struct OriginCheck {
    hosts: Hosts,
    origins: Vec<String>,
}

impl OriginCheck {
    pub(crate) fn new(config: &EndpointConfig) -> Self {
        Self {
            hosts: Hosts::new(&config.allowed_hosts, false),
            origins: config.allowed_origins.clone(),
        }
    }

    pub(crate) fn check(&self, head: &Parts) -> Result<Option<HeaderValue>, Refusal> {
        let host = head.headers.get(header::HOST);
        let authority = head.uri.authority().map(|authority| authority.as_str());
        let named = host.map(|host| host.to_str().unwrap_or_default());
        // HTTP/2 names the host in the URI. Both the URI's and the header's host must be allowed.
        let mut local = true;
        let mut own = None;
        for name in [named, authority].into_iter().flatten() {
            let welcome = self.host(name)?;
            local &= welcome == Welcome::Local;
            own = (welcome == Welcome::Listed).then_some(name);
        }
        if named.or(authority).is_none() {
            local = self.host("")? == Welcome::Local;
        }
        let origin = head.headers.get(header::ORIGIN);
        // A proxy may have emptied the Origin header.
        let Some(origin) = origin.filter(|origin| !origin.is_empty()) else {
            return Ok(None);
        };
        self.origin(origin, local, own)
            .map(|()| Some(origin.clone()))
    }

    fn host(&self, host: &str) -> Result<Welcome, Refusal> {
        let admitted = self.hosts.admit(host);
        admitted.ok_or_else(|| Refusal::ForeignHost(shown(host, EXCERPT)))
    }

    fn origin(
        &self,
        origin: &HeaderValue,
        local_host: bool,
        own: Option<&str>,
    ) -> Result<(), Refusal> {
        let text = origin.to_str().unwrap_or_default();
        let page = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"));
        let local = local_host && page.is_some_and(is_local);
        let listed = |allowed: &String| allowed == "*" || allowed.eq_ignore_ascii_case(text);
        let same = own.is_some_and(|host| is_same_origin(text, host));
        if local || same || self.origins.iter().any(listed) {
            Ok(())
        } else {
            Err(Refusal::ForeignOrigin(shown(text, EXCERPT)))
        }
    }
}

/// Proves little for unlisted hosts, because the page of a rebound name is on the requested host
/// too.
fn is_same_origin(origin: &str, host: &str) -> bool {
    let same = |scheme: &str, port: &str| {
        let bare = |name: &'_ str| name.len() - if name.ends_with(port) { port.len() } else { 0 };
        let page = origin.strip_prefix(scheme);
        page.is_some_and(|page| page[..bare(page)].eq_ignore_ascii_case(&host[..bare(host)]))
    };
    same("https://", ":443") || same("http://", ":80")
}

#[cfg(test)]
mod tests;
