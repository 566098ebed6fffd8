//! Entry points for `scripts/fuzz`, compiled only with `--cfg fuzzing`.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use shoal_ports::{Credentials, Scheme};
use url::Url;

use super::claims::{BindingSource, ClaimRules};
use super::dpop::Possession;
use super::jws::Jws;
use super::keys::KeySet;
use super::scopes::Scopes;
use crate::config::{Auth, Dpop, Issuer, SigningAlgorithm};

const ISSUER: &str = "https://a";
const RESOURCE: &str = "https://b/mcp";

static RULES: LazyLock<ClaimRules> = LazyLock::new(|| {
    let issuer = Issuer {
        issuer: ISSUER.to_owned(),
        ..Issuer::default()
    };
    let scopes = Arc::new(Scopes::new(&Auth::default()));
    let minute = Duration::from_secs(60);
    let issuer = issuer.resolved(RESOURCE).expect("it can be used");
    ClaimRules::new(issuer, true, minute, minute, scopes)
});

static POSSESSION: LazyLock<Possession> = LazyLock::new(|| {
    let resource = Url::parse(RESOURCE).expect("it is a URL");
    let auth = Auth {
        dpop: Dpop::Accepted,
        ..Auth::default()
    };
    Possession::new(&auth, resource, "/mcp".to_owned())
});

/// Reads a token, before and after its signature check.
pub fn token(text: &str) {
    let Some(jws) = Jws::of(text) else {
        return;
    };
    jws.algorithm(&SigningAlgorithm::ALL);
    jws.is_of_type(&["at+jwt", "jwt"]);
    let _ = RULES.read(jws.payload(), BindingSource::ByToken);
}

/// Reads claims of a token or of an introspection.
pub fn claims(text: &[u8]) {
    for told in [BindingSource::ByToken, BindingSource::ByIssuer] {
        if let Ok(verified) = RULES.read(text, told) {
            assert!(verified.principal.as_str().starts_with(ISSUER));
        }
    }
}

/// Reads a proof of possession.
pub fn dpop_proof(text: &str) {
    let shown = Credentials {
        token: Some((Scheme::Dpop, b"token")),
        proof: Some(text),
        ..Credentials::none()
    };
    assert!(POSSESSION.read("key", &[0; 32], &shown, 0.0).is_err());
}

/// Reads an issuer's key document.
pub fn key_set(text: &[u8]) {
    let _ = KeySet::read(text).map(|keys| keys.len());
}
