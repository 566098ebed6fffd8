use std::collections::HashMap;
use std::sync::Arc;

use crate::config::{ResolvedIssuer, canonical};

pub(crate) struct IssuerNames {
    /// By possible values of `iss`.
    by_claim: HashMap<String, Arc<str>>,
    /// For tokens without `iss`, if the issuer has only one tenant.
    sole: Option<Arc<str>>,
    listed: String,
}

impl IssuerNames {
    pub(crate) fn new(issuer: &ResolvedIssuer) -> Self {
        let mut by_claim = HashMap::new();
        for tenant in &issuer.tenants {
            let name: Arc<str> = tenant.name.as_str().into();
            for text in [&tenant.name].into_iter().chain(&tenant.aliases) {
                by_claim.insert(canonical(text).into_owned(), Arc::clone(&name));
            }
        }
        let names: Vec<&str> = issuer.names().map(String::as_str).collect();
        let sole = (!issuer.has_several_tenants).then(|| issuer.server.as_str().into());
        Self {
            by_claim,
            sole,
            listed: names.join(", "),
        }
    }

    pub(crate) fn named(&self, iss: &str) -> Option<&Arc<str>> {
        self.by_claim.get(&*canonical(iss))
    }

    pub(crate) fn sole(&self) -> Option<&Arc<str>> {
        self.sole.as_ref()
    }

    pub(crate) fn listed(&self) -> &str {
        &self.listed
    }
}
