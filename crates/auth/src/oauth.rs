//! Shoal as an OAuth 2.1 resource server.
//!
//! A token is checked in this order: length, form, claimed issuer, algorithm, key, signature, and then its
//! other claims. A valid token is cached. Each request also checks the token's binding to a key or
//! certificate, and its scopes.

mod cache;
mod claims;
mod dpop;
mod flights;
#[cfg(fuzzing)]
pub mod fuzz;
mod http;
mod introspection;
mod jws;
mod key_source;
mod keys;
mod metadata;
mod names;
mod recheck;
mod replays;
mod resource;
mod scopes;
mod unique;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shoal_outbound::Outbound;
use shoal_ports::{
    AuthError, Authenticated, Authenticator, Credentials, Grant, GrantWatch, Operation,
    ResourceMetadata, TokenDigest, TokenFault,
};
use tokio::time::Instant;

use self::cache::VerifiedTokens;
use self::claims::{BindingSource, ClaimRules, Verified};
use self::dpop::Possession;
use self::http::HttpAsker;
use self::introspection::Introspector;
use self::jws::Jws;
use self::key_source::{KeyConfig, KeySource, KnownKeys, NoKeys};
use self::keys::Candidates;
use self::resource::ProtectedResource;
use self::scopes::Scopes;
use crate::config::{
    Auth, Issuer, ResolvedIntrospection, ResolvedIssuer, SigningAlgorithm, public_url,
};
use crate::refused;

const AWAY: AuthError = AuthError::Unavailable {
    reason: "the authorization server cannot be reached",
    retry_after: Duration::from_secs(5),
};

/// Accepted `typ` headers. Other JWTs, such as proofs and logout tokens, are refused.
const TYPES: [&str; 2] = ["jwt", "at+jwt"];

/// Authenticates callers by access tokens. Dropping it ends its background tasks.
pub struct OAuth {
    tokens: Arc<AccessTokens>,
    token_bytes: usize,
    possession: Possession,
    resource: ProtectedResource,
}

struct AccessTokens {
    issuers: Vec<TrustedIssuer>,
    verified: Arc<VerifiedTokens>,
    scopes: Arc<Scopes>,
    believed_for: Duration,
}

struct TrustedIssuer {
    name: String,
    algorithms: Vec<SigningAlgorithm>,
    rules: Arc<ClaimRules>,
    /// `None` if the issuer is asked about tokens instead.
    keys: Option<KeySource>,
    asked: Option<Introspector>,
    takes_opaque: bool,
}

/// An authorization server's state, for `/status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuerReport {
    /// The issuer's name.
    pub issuer: String,
    /// The number of known keys; `None` if the issuer is asked instead.
    pub keys: Option<usize>,
    /// Seconds since the keys were fetched.
    pub age_seconds: Option<u64>,
    /// Why the last request to the issuer failed, if it did.
    pub trouble: Option<String>,
}

impl OAuth {
    /// Starts to fetch keys. `path` is where this server serves `auth.resource`.
    ///
    /// # Errors
    /// The unusable setting or file.
    pub fn start(auth: &Auth, path: &str, outbound: &Outbound) -> Result<Self, String> {
        auth.check().map_err(|bad| bad.reason)?;
        let resource = public_url(&auth.resource)?;
        let resolved = auth.issuers.iter().map(|one| one.resolved(&auth.resource));
        let resolved = resolved.collect::<Result<Vec<_>, _>>()?;
        let servers: Vec<&str> = resolved.iter().map(|one| one.server.as_str()).collect();
        let described = ProtectedResource::new(auth, &servers, &resource, path);
        let scopes = Arc::new(Scopes::new(auth));
        let verified = Arc::new(VerifiedTokens::new(auth.cached_bytes));
        let issuers = auth.issuers.iter().zip(resolved);
        let issuers = issuers.map(|(issuer, resolved)| {
            TrustedIssuer::start(issuer, resolved, auth, &scopes, &verified, outbound)
        });
        Ok(Self {
            tokens: Arc::new(AccessTokens {
                issuers: issuers.collect::<Result<_, _>>()?,
                verified,
                scopes,
                believed_for: auth.cached_for.get(),
            }),
            token_bytes: auth.token_bytes,
            resource: described,
            possession: Possession::new(auth, resource, path.to_owned()),
        })
    }

    /// Returns each authorization server's state.
    pub fn report(&self) -> Vec<IssuerReport> {
        self.tokens
            .issuers
            .iter()
            .map(TrustedIssuer::report)
            .collect()
    }

    /// Returns why callers cannot be authenticated, until some issuer's keys have been fetched.
    pub fn waits_for(&self) -> Option<String> {
        let without = |issuer: &TrustedIssuer| {
            let keys = issuer.keys.as_ref();
            keys.is_some_and(|keys| keys.known().age().is_none())
        };
        let nobody = self.tokens.issuers.iter().all(without);
        nobody.then(|| "the keys of no authorization server are known yet".to_owned())
    }

    /// Names the authorization servers whose keys could not be fetched at the last attempt, if any.
    pub fn trouble(&self) -> Option<String> {
        let issuers = self.tokens.issuers.iter();
        let away = issuers.filter(|issuer| {
            let keys = issuer.keys.as_ref();
            keys.is_some_and(|keys| keys.known().trouble.is_some())
        });
        let away: Vec<&str> = away.map(|issuer| issuer.name.as_str()).collect();
        (!away.is_empty()).then(|| format!("no keys can be fetched from {}", away.join(", ")))
    }
}

impl AccessTokens {
    /// Verifies a token at `now`. Cancel safe.
    async fn read(
        &self,
        token: &[u8],
        digest: TokenDigest,
        now: Instant,
    ) -> Result<Verified, AuthError> {
        if let Some(known) = self.verified.get(&digest, now) {
            return Ok(known);
        }
        let malformed = |_| AuthError::Token(refused::token("bytes that are not text"));
        let token = str::from_utf8(token).map_err(malformed)?;
        Box::pin(self.verify(token, digest)).await
    }

    async fn verify(&self, token: &str, digest: TokenDigest) -> Result<Verified, AuthError> {
        let fault = AuthError::Token;
        let Some(jws) = Jws::of(token) else {
            // An opaque token names no issuer. At most one issuer takes such tokens, so only that issuer sees it.
            let mut issuers = self.issuers.iter().filter(|issuer| issuer.takes_opaque);
            let asked = issuers.find_map(|issuer| issuer.asked.as_ref());
            let asked = asked.ok_or_else(|| fault(not_signed(token)))?;
            return asked.ask(token, digest, None).await;
        };
        let named: IssuerClaim = jws
            .read()
            .ok_or_else(|| fault(refused::token("a JWT whose claims are not a JSON object")))?;
        let iss = named
            .iss
            .as_ref()
            .and_then(Value::as_str)
            .unwrap_or_default();
        let mut issuers = self.issuers.iter();
        let issuer = issuers.find(|issuer| issuer.rules.names().named(iss).is_some());
        let issuer = issuer.ok_or_else(|| {
            let names = self
                .issuers
                .iter()
                .map(|issuer| issuer.rules.names().listed());
            let names = names.collect::<Vec<_>>().join(", ");
            let came = named.iss.as_ref();
            fault(refused::claim(TokenFault::Issuer, "iss", came, &names))
        })?;
        let Some(keys) = &issuer.keys else {
            let asked = issuer.asked.as_ref().ok_or(AWAY)?;
            return asked.ask(token, digest, Some(jws.payload())).await;
        };
        let algorithm = jws.algorithm(&issuer.algorithms);
        let algorithm = algorithm.ok_or_else(|| {
            let came = Value::String(jws.header.alg.clone());
            let known = format!("{:?}", issuer.algorithms);
            fault(refused::claim(
                TokenFault::Algorithm,
                "alg",
                Some(&came),
                &known,
            ))
        })?;
        expect_access_token(&jws).map_err(fault)?;
        expect_signature(&jws, algorithm, keys, issuer.rules.tenant(iss)).await?;
        let verified = issuer.rules.read(jws.payload(), BindingSource::ByToken);
        let verified = verified.map_err(fault)?;
        self.verified.keep(digest, verified.clone());
        Ok(verified)
    }
}

#[derive(Deserialize)]
struct IssuerClaim {
    #[serde(default)]
    iss: Option<Value>,
}

fn not_signed(token: &str) -> TokenFault {
    match token.split('.').count() {
        5 => refused::token("a JWT that is encrypted (JWE)"),
        _ => refused::token("no JWT, and no issuer is asked about other tokens"),
    }
}

fn expect_access_token(jws: &Jws<'_>) -> Result<(), TokenFault> {
    let malformed = |member: &str, came: Option<&Value>, due: &str| {
        Err(refused::claim(TokenFault::Malformed, member, came, due))
    };
    if !jws.is_of_type(&TYPES) {
        let came = jws.header.typ.clone().map(Value::String);
        return malformed("typ", came.as_ref(), &TYPES.join(", "));
    }
    match &jws.header.crit {
        Some(crit) => malformed("crit", Some(crit), "none"),
        None => Ok(()),
    }
}

async fn expect_signature(
    jws: &Jws<'_>,
    algorithm: SigningAlgorithm,
    source: &KeySource,
    tenant: Option<&str>,
) -> Result<(), AuthError> {
    let kid = jws.header.kid.as_deref();
    let wrong = |candidates: &Candidates<'_>| {
        if !candidates.keys.is_empty() {
            return AuthError::Token(TokenFault::Signature);
        }
        let came = kid.map(|kid| Value::String(kid.to_owned()));
        let expected = "a key of the issuer's that is for this algorithm";
        AuthError::Token(refused::claim(
            TokenFault::Key,
            "kid",
            came.as_ref(),
            expected,
        ))
    };
    let is_signed = |candidates: &Candidates<'_>| {
        let mut keys = candidates.keys.iter();
        keys.any(|key| jws.is_signed_by(key, algorithm))
    };
    let (keys, seen) = source.keys().await.map_err(|_| AWAY)?;
    let candidates = keys.candidates(kid, algorithm, tenant);
    if is_signed(&candidates) {
        return Ok(());
    }
    if candidates.are_named {
        return Err(wrong(&candidates));
    }
    let newer = source.newer(seen).await.map_err(|none| match none {
        NoKeys::Unknown => wrong(&candidates),
        NoKeys::Away => AWAY,
    })?;
    let candidates = newer.candidates(kid, algorithm, tenant);
    match is_signed(&candidates) {
        true => Ok(()),
        false => Err(wrong(&candidates)),
    }
}

impl TrustedIssuer {
    fn start(
        issuer: &Issuer,
        resolved: ResolvedIssuer,
        auth: &Auth,
        scopes: &Arc<Scopes>,
        verified: &Arc<VerifiedTokens>,
        outbound: &Outbound,
    ) -> Result<Self, String> {
        let timeout = auth.request_timeout.get();
        let name = resolved.server.clone();
        let http = HttpAsker::new(issuer, &resolved, timeout, outbound);
        let http = http.map_err(|why| format!("{name}: {why}"))?;
        let rules = Arc::new(ClaimRules::new(
            resolved.clone(),
            auth.issuers.len() > 1,
            auth.clock_skew.get(),
            auth.cached_for.get(),
            scopes.clone(),
        ));
        let asked = resolved.asked.clone();
        let takes_opaque = asked
            .as_ref()
            .is_some_and(ResolvedIntrospection::takes_opaque);
        let keys = asked
            .as_ref()
            .is_none_or(|asked| !asked.takes_jwts())
            .then(|| {
                let config = KeyConfig {
                    issuer: name.clone(),
                    described_as: resolved.described_as.clone(),
                    jwks_url: resolved.jwks_url.clone(),
                    refresh: auth.keys_refresh.get(),
                    interval: auth.keys_interval.get(),
                    stale: auth.keys_stale.get(),
                    timeout,
                };
                KeySource::start(http.clone(), config)
            });
        let asked = asked.map(|asked| {
            let (rules, verified) = (Arc::clone(&rules), Arc::clone(verified));
            Introspector::new(http, &resolved, asked, rules, verified)
        });
        Ok(Self {
            name,
            algorithms: issuer.algorithms.clone(),
            rules,
            keys,
            asked,
            takes_opaque,
        })
    }

    fn report(&self) -> IssuerReport {
        let known: Option<KnownKeys> = self.keys.as_ref().map(KeySource::known);
        let age = known.as_ref().and_then(KnownKeys::age);
        IssuerReport {
            issuer: self.name.clone(),
            keys: known.as_ref().map(KnownKeys::count),
            age_seconds: age.map(|age| age.as_secs()),
            trouble: known.and_then(|known| known.trouble),
        }
    }
}

#[async_trait]
impl Authenticator for OAuth {
    async fn authenticate(&self, shown: Credentials<'_>) -> Result<Authenticated, AuthError> {
        self.known(shown).await.inspect_err(refused::caller)
    }

    fn method(&self) -> &'static str {
        "oauth"
    }

    fn authorize(&self, grant: &Grant, operation: &Operation<'_>) -> Result<(), AuthError> {
        self.tokens.scopes.expect_for(grant, operation)
    }

    fn watch(&self, token: &[u8], known: &Authenticated) -> GrantWatch {
        recheck::watch(&self.tokens, token, known)
    }

    fn challenges(&self, why: &AuthError) -> Vec<String> {
        self.resource.challenges(why)
    }

    fn resource_metadata(&self) -> Option<ResourceMetadata> {
        Some(self.resource.metadata())
    }
}

impl OAuth {
    async fn known(&self, shown: Credentials<'_>) -> Result<Authenticated, AuthError> {
        let (_, token) = shown.token.ok_or(AuthError::Missing)?;
        if token.len() > self.token_bytes {
            return Err(AuthError::Token(TokenFault::TooLong));
        }
        let digest = shown.digest(token);
        let verified = self.tokens.read(token, digest, shown.came).await?;
        self.possession.check(&verified, &digest, &shown)?;
        self.tokens.scopes.expect_required(&verified.grant)?;
        Ok(Authenticated {
            principal: verified.principal,
            grant: Some(verified.grant),
        })
    }
}
