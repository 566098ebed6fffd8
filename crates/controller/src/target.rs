//! Decides which URLs may become a pool.
//!
//! Without this check, a user who may change an object could make Shoal's workers call any host. A URL must lead to a
//! Service in the object's namespace whose pods a selector chooses, or to an address in `outbound.allow`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use shoal_outbound::OutboundConfig;
use url::{Host, Url};

use crate::object::{Service, cut};
use crate::translate::Refusal;

/// Maximum characters of a URL.
pub(crate) const LONGEST_URL: usize = 2048;
/// Maximum bytes of a wrong URL that a refusal quotes, so that its message has room for the right form.
const SHOWN: usize = 200;

/// The places that a URL may lead to: the cluster's Services, and the addresses in `outbound.allow`.
pub(crate) struct Reach<'a> {
    pub(crate) services: &'a BTreeMap<(&'a str, &'a str), &'a Service>,
    pub(crate) outbound: &'a OutboundConfig,
    pub(crate) cluster_domain: &'a str,
}

impl Reach<'_> {
    /// Checks the URL of an object in this namespace. Returns the URL that workers call.
    ///
    /// # Errors
    ///
    /// Returns why the URL is not allowed.
    pub(crate) fn admit(&self, namespace: &str, url: &str) -> Result<Url, Refusal> {
        if url.len() > LONGEST_URL {
            return Err(Refusal::target(format!(
                "the URL is longer than {LONGEST_URL} characters"
            )));
        }
        let shown = cut(url, SHOWN);
        let wrong = |what: &str| {
            Refusal::target(format!(
                "the URL {shown:?} {what}: write it as http://NAME.{namespace}.svc:PORT/PATH, or with https"
            ))
        };
        let parsed =
            Url::parse(url).map_err(|error| wrong(&format!("cannot be parsed ({error})")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(wrong("does not begin with http:// or https://"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            let told = "the URL contains a user or a password: put a token into a Secret and name it by shoal.dev/token-secret";
            return Err(Refusal::target(told.to_owned()));
        }
        match parsed.host() {
            Some(Host::Domain(host)) => self.admit_name(namespace, host)?,
            Some(Host::Ipv4(address)) => self.admit_address(address.into())?,
            Some(Host::Ipv6(address)) => self.admit_address(address.into())?,
            None => return Err(wrong("has no host")),
        }
        // Remove the fragment, because clients do not send it. ToolHive puts the container's name there.
        let mut parsed = parsed;
        parsed.set_fragment(None);
        Ok(parsed)
    }

    fn admit_name(&self, namespace: &str, host: &str) -> Result<(), Refusal> {
        let plain = host.strip_suffix('.').unwrap_or(host);
        let within = plain
            .strip_suffix(self.cluster_domain)
            .and_then(|rest| rest.strip_suffix('.'))
            .unwrap_or(plain);
        let labels: Vec<&str> = within.split('.').collect();
        let [name, of, "svc"] = labels[..] else {
            return Err(Refusal::target(format!(
                "{host} is not a Service of the cluster (NAME.NAMESPACE.svc). To call a host outside the cluster, use its address and add the address to outbound.allow"
            )));
        };
        if of != namespace {
            return Err(Refusal::target(format!(
                "{host} is in the namespace {of}, but the object is in {namespace}: use a Service of the object's own namespace"
            )));
        }
        let Some(service) = self.services.get(&(of, name)) else {
            return Err(Refusal::target(format!(
                "there is no Service {name} in the namespace {namespace}"
            )));
        };
        service
            .reachable()
            .map_err(|why| Refusal::target(format!("the Service {name} {why}")))
    }

    fn admit_address(&self, address: IpAddr) -> Result<(), Refusal> {
        match self.outbound.allows(address) {
            true => Ok(()),
            false => Err(Refusal::target(format!(
                "{address} is not a Service of the cluster: use a Service's name, or add the address's network to outbound.allow"
            ))),
        }
    }
}

impl Service {
    /// Checks that only a selector chooses the Service's pods.
    ///
    /// # Errors
    ///
    /// Returns the reason if users can choose other addresses.
    pub(crate) fn reachable(&self) -> Result<(), &'static str> {
        match (self.external, self.selects) {
            (true, _) => Err("is of the type ExternalName, which could lead to any host"),
            (false, false) => {
                Err("has no selector: its addresses are set by hand, and could lead to any host")
            }
            (false, true) => Ok(()),
        }
    }
}
