//! Completes the settings of an issuer with the defaults of its kind.

use url::Url;

use super::issuer::{Introspection, Issuer, IssuerKind, Protocol};
use super::kinds::{self, Defaults};
use super::resolved::{ResolvedIntrospection, ResolvedIssuer, Tenancy, Tenant};
use super::{asked_url, entra};

impl Issuer {
    /// `resource` is the default audience.
    ///
    /// # Errors
    /// If the issuer cannot be used, or no token would be accepted.
    pub(crate) fn resolved(&self, resource: &str) -> Result<ResolvedIssuer, String> {
        let name = match self.issuer.is_empty() {
            true => Defaults::of(self.issuer_kind).issuer,
            false => &self.issuer,
        };
        if name.is_empty() {
            return Err(
                "an issuer needs `issuer`, the identifier that its tokens have in `iss`".to_owned(),
            );
        }
        let resolved = self.resolve(name, resource);
        resolved.map_err(|why| match why.contains(name) {
            true => why,
            false => format!("{name:?}: {why}"),
        })
    }

    fn resolve(&self, name: &str, resource: &str) -> Result<ResolvedIssuer, String> {
        let defaults = Defaults::of(self.issuer_kind);
        let url = self.expect_urls(name)?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err("an issuer must not have a query or a fragment".to_owned());
        }
        if self.algorithms.is_empty() {
            return Err("algorithms must name at least one".to_owned());
        }
        let chosen = |set: &[String], default: &[&str]| match set.is_empty() {
            true => default.iter().map(|claim| (*claim).to_owned()).collect(),
            false => set.to_vec(),
        };
        let tenancy = self.tenancy(name, &chosen(&self.aliases, defaults.aliases))?;
        let required = defaults.required_claims.iter();
        let required = required.map(|(claim, texts)| ((*claim).to_owned(), chosen(&[], texts)));
        let resolved = ResolvedIssuer {
            has_several_tenants: tenancy.server != tenancy.described_as,
            server: tenancy.server,
            described_as: tenancy.described_as,
            tenants: tenancy.tenants,
            audience: chosen(&self.audience, &[resource]),
            audience_claims: chosen(&self.audience_claims, defaults.audience_claims),
            clients: self.clients.clone(),
            principal_claims: chosen(&self.principal_claims, defaults.principal_claims),
            scope_claims: chosen(&self.scope_claims, defaults.scope_claims),
            required_claims: match self.required_claims.is_empty() {
                true => required.collect(),
                false => self.required_claims.clone(),
            },
            jwks_url: self.jwks_url.clone(),
            asked: self.asked(&defaults)?,
        };
        resolved.expect_names()?;
        kinds::expect_bound(self, &resolved)?;
        kinds::expect_usable(self, &resolved)?;
        Ok(resolved)
    }

    fn expect_urls(&self, name: &str) -> Result<Url, String> {
        let asked = self.introspection.as_ref();
        let endpoint = asked.and_then(|asked| asked.endpoint.as_ref());
        for url in [self.jwks_url.as_ref(), endpoint].into_iter().flatten() {
            asked_url(url, self.allow_http)?;
        }
        asked_url(name, self.allow_http)
    }

    fn tenancy(&self, name: &str, aliases: &[String]) -> Result<Tenancy, String> {
        if self.issuer_kind == Some(IssuerKind::Entra) {
            return entra::tenancy(name, &self.tenants, aliases);
        }
        if !self.tenants.is_empty() {
            return Err(
                "tenants works only with issuer_kind = \"entra\": list other issuers one by one"
                    .to_owned(),
            );
        }
        let name = name.to_owned();
        Ok(Tenancy {
            server: name.clone(),
            described_as: name.clone(),
            tenants: vec![Tenant {
                name,
                aliases: aliases.to_vec(),
            }],
        })
    }

    fn asked(&self, defaults: &Defaults) -> Result<Option<ResolvedIntrospection>, String> {
        let set = match (&self.introspection, defaults.asked) {
            (None, None) => return Ok(None),
            (set, _) => set.clone().unwrap_or_default(),
        };
        let Introspection {
            endpoint,
            client_id,
            client_secret_file,
            protocol,
            tokens,
        } = set;
        let default = defaults.asked;
        let asked = ResolvedIntrospection {
            endpoint: endpoint.or(default.map(|asked| asked.endpoint.to_owned())),
            client_id,
            client_secret_file: client_secret_file.unwrap_or_default(),
            protocol: protocol
                .or(default.map(|asked| asked.protocol))
                .unwrap_or_default(),
            tokens: tokens
                .or(default.map(|asked| asked.tokens))
                .unwrap_or_default(),
        };
        let names_client =
            !asked.client_id.is_empty() && !asked.client_secret_file.as_os_str().is_empty();
        match asked.protocol {
            Protocol::Rfc7662 if !names_client => {
                Err("introspection needs client_id and client_secret_file".to_owned())
            }
            Protocol::TokenInfo if asked.endpoint.is_none() => {
                Err("introspection needs endpoint with protocol = \"tokeninfo\"".to_owned())
            }
            _ => Ok(Some(asked)),
        }
    }
}
