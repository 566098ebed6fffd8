use std::collections::BTreeMap;
use std::path::PathBuf;

use super::issuer::{AskedTokens, Protocol};

#[derive(Clone, Debug)]
pub(crate) struct ResolvedIssuer {
    pub(crate) server: String,
    pub(crate) described_as: String,
    /// One, unless several tenants share the keys.
    pub(crate) tenants: Vec<Tenant>,
    pub(crate) has_several_tenants: bool,
    pub(crate) audience: Vec<String>,
    pub(crate) audience_claims: Vec<String>,
    pub(crate) clients: Vec<String>,
    pub(crate) principal_claims: Vec<String>,
    pub(crate) scope_claims: Vec<String>,
    pub(crate) required_claims: BTreeMap<String, Vec<String>>,
    pub(crate) jwks_url: Option<String>,
    pub(crate) asked: Option<ResolvedIntrospection>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) aliases: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Tenancy {
    pub(super) server: String,
    pub(super) described_as: String,
    pub(super) tenants: Vec<Tenant>,
}

#[derive(Clone, Debug)]
pub(crate) struct ResolvedIntrospection {
    /// `None` to find it in the metadata.
    pub(crate) endpoint: Option<String>,
    pub(crate) client_id: String,
    pub(crate) client_secret_file: PathBuf,
    pub(crate) protocol: Protocol,
    pub(crate) tokens: AskedTokens,
}

impl ResolvedIntrospection {
    pub(crate) fn takes_jwts(&self) -> bool {
        self.tokens != AskedTokens::Opaque
    }

    pub(crate) fn takes_opaque(&self) -> bool {
        self.tokens != AskedTokens::Jwt
    }
}

impl ResolvedIssuer {
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        let tenants = self.tenants.iter();
        tenants.flat_map(|tenant| [&tenant.name].into_iter().chain(&tenant.aliases))
    }

    pub(super) fn expect_names(&self) -> Result<(), String> {
        for (setting, names) in [
            ("aliases", self.names().collect::<Vec<_>>()),
            ("audience", self.audience.iter().collect()),
            ("audience_claims", self.audience_claims.iter().collect()),
            ("clients", self.clients.iter().collect()),
            ("principal_claims", self.principal_claims.iter().collect()),
            ("scope_claims", self.scope_claims.iter().collect()),
        ] {
            if names.iter().any(|name| name.is_empty()) {
                return Err(format!("{setting} has an empty text"));
            }
        }
        let mut required = self.required_claims.iter();
        match required.find(|(claim, texts)| claim.is_empty() || texts.is_empty()) {
            Some((claim, _)) => Err(format!(
                "required_claims must list at least one allowed text for {claim:?}"
            )),
            None => Ok(()),
        }
    }
}
