//! The endpoints of a server.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use http::{HeaderValue, Uri};
use reqwest::Url;

/// An MCP endpoint.
#[derive(Debug, Clone)]
pub struct Target {
    /// The address to connect to.
    pub address: SocketAddr,
    /// The value of the header `Host`.
    pub host: HeaderValue,
    /// The path of the endpoint.
    pub path: Uri,
    /// The value of the header `Authorization`.
    pub authorization: Option<HeaderValue>,
}

impl Target {
    /// Resolves several URLs on this machine.
    pub async fn resolve_all(urls: &[String]) -> anyhow::Result<Vec<Self>> {
        let mut targets = Vec::with_capacity(urls.len());
        for url in urls {
            targets.push(Self::resolve(url).await?);
        }
        Ok(targets)
    }

    /// Resolves a URL. Refuses other machines, because a typing error could attack a foreign server.
    pub async fn resolve(url: &str) -> anyhow::Result<Self> {
        let target = Self::of(url)?;
        ensure!(
            target.address.ip().is_loopback(),
            "{url} is not on this machine; forward a local port to load a remote server"
        );
        Ok(target)
    }

    /// Resolves a URL on any machine.
    pub(crate) fn of(url: &str) -> anyhow::Result<Self> {
        let parsed = Url::parse(url).with_context(|| format!("not a URL: {url}"))?;
        let is_http = parsed.scheme() == "http";
        ensure!(is_http, "only http:// URLs can be driven: {url}");
        let addresses = parsed.socket_addrs(|| None);
        let addresses = addresses.with_context(|| format!("could not resolve {url}"))?;
        let query = parsed.query().map(|query| format!("?{query}"));
        let path = parsed.path().to_owned() + &query.unwrap_or_default();
        Ok(Self {
            address: *addresses.first().context("a host without an address")?,
            host: parsed.authority().parse()?,
            path: path.parse().context("path is not a request target")?,
            authorization: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[tokio::test]
    async fn a_local_url_resolves_to_its_parts() {
        let target = Target::resolve("http://[::1]:8080/mcp?a=b").await.unwrap();
        assert_eq!(target.address, "[::1]:8080".parse().unwrap());
        assert_eq!(
            (
                target.host.to_str().unwrap(),
                target.path.to_string().as_str()
            ),
            ("[::1]:8080", "/mcp?a=b")
        );
    }

    #[tokio::test]
    async fn what_is_not_on_this_machine_is_refused() {
        // These addresses are reserved for documentation.
        for url in [
            "http://192.0.2.1/mcp",
            "http://[2001:db8::1]/mcp",
            "https://127.0.0.1/mcp",
            "/mcp",
        ] {
            assert!(Target::resolve(url).await.is_err(), "{url}");
        }
    }
}
