//! The endpoints of a server.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

use anyhow::{Context, bail};
use http::{HeaderValue, Uri};

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
        if !target.address.ip().is_loopback() {
            bail!("{url} is not on this machine; forward a local port to load a remote server");
        }
        Ok(target)
    }

    /// Resolves a URL on any machine.
    pub(crate) fn of(url: &str) -> anyhow::Result<Self> {
        let uri = Uri::from_str(url).with_context(|| format!("not a URL: {url}"))?;
        if uri.scheme_str() != Some("http") {
            bail!("only http:// URLs can be driven: {url}");
        }
        let authority = uri
            .authority()
            .with_context(|| format!("no host in {url}"))?;
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        let port = authority.port_u16().unwrap_or(80);
        let address = (host, port)
            .to_socket_addrs()
            .with_context(|| format!("could not resolve {host}"))?
            .next()
            .with_context(|| format!("{host} has no address"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            address,
            host: HeaderValue::from_str(authority.as_str())
                .context("host is not a header value")?,
            path: Uri::from_str(path).context("path is not a request target")?,
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
