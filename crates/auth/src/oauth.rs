//! Access tokens of authorization servers: Shoal as an OAuth 2.1 resource server.
//!
//! A token is checked in this order: its length; its form; whose it says it is; its algorithm; its key; its signature; then what it
//! says, of which nothing is believed before. A token that passed is remembered. With every request: how it is shown, and
//! the scopes.

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
use self::claims::{ClaimRules, Told, Verified};
use self::dpop::Possession;
use self::http::HttpAsker;
use self::introspection::Introspector;
use self::jws::Jws;
use self::key_source::{KeyConfig, KeySource, Known, NoKeys};
use self::resource::Resource;
use self::scopes::Scopes;
use crate::config::{Auth, Issuer, SigningAlgorithm, public_url, same};
use crate::refused;

/// Nobody can tell now.
const AWAY: AuthError = AuthError::Unavailable {
    reason: "the authorization server cannot be reached",
    retry_after: Duration::from_secs(5),
};

/// What access tokens are called in their headers. Anything else that an issuer signs, such as a proof or a logout, is none.
const TYPES: [&str; 2] = ["jwt", "at+jwt"];

/// Knows callers by the access tokens of authorization servers. Dropping it ends what it does in the background.
pub struct OAuth {
    tokens: Arc<AccessTokens>,
    token_bytes: usize,
    possession: Possession,
    resource: Resource,
}

/// The access tokens that the issuers have made, and the grants behind them.
struct AccessTokens {
    issuers: Vec<TrustedIssuer>,
    verified: Arc<VerifiedTokens>,
    scopes: Arc<Scopes>,
    /// How long an answer of an issuer is believed.
    believed_for: Duration,
}

/// An authorization server whose tokens are taken.
struct TrustedIssuer {
    name: String,
    algorithms: Vec<SigningAlgorithm>,
    check: Check,
}

#[expect(clippy::large_enum_variant, reason = "one for each issuer, made once")]
enum Check {
    Keys(KeySource, ClaimRules),
    Introspection(Introspector),
}

/// What is known of an authorization server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuerReport {
    /// Its name.
    pub issuer: String,
    /// How many of its keys are known; none where it is asked about tokens instead.
    pub keys: Option<usize>,
    /// How long ago those came.
    pub age_seconds: Option<u64>,
    /// Why they could not be fetched last, if that is so.
    pub trouble: Option<String>,
}

impl OAuth {
    /// Begins to fetch keys. `path` is where this server serves what `auth.resource` names.
    ///
    /// # Errors
    /// A setting or a file that cannot be used.
    pub fn start(auth: &Auth, path: &str, outbound: &Outbound) -> Result<Self, String> {
        auth.check().map_err(|bad| bad.reason)?;
        let resource = public_url(&auth.resource)?;
        let scopes = Arc::new(Scopes::new(auth));
        let verified = Arc::new(VerifiedTokens::new(auth.cached_bytes));
        let issuers = auth.issuers.iter();
        let issuers =
            issuers.map(|issuer| TrustedIssuer::start(issuer, auth, &scopes, &verified, outbound));
        Ok(Self {
            tokens: Arc::new(AccessTokens {
                issuers: issuers.collect::<Result<_, _>>()?,
                verified,
                scopes,
                believed_for: auth.cached_for.get(),
            }),
            token_bytes: auth.token_bytes,
            resource: Resource::new(auth, &resource, path),
            possession: Possession::new(auth, resource, path.to_owned()),
        })
    }

    /// What is known of each authorization server.
    pub fn report(&self) -> Vec<IssuerReport> {
        self.tokens
            .issuers
            .iter()
            .map(TrustedIssuer::report)
            .collect()
    }

    /// What keeps callers from being authenticated, if nobody's keys were ever had.
    pub fn waits_for(&self) -> Option<String> {
        let without = |issuer: &TrustedIssuer| match &issuer.check {
            Check::Keys(keys, _) => keys.known().age().is_none(),
            Check::Introspection(_) => false,
        };
        let nobody = self.tokens.issuers.iter().all(without);
        nobody.then(|| "the keys of no authorization server are known yet".to_owned())
    }

    /// Which authorization servers could not be reached last.
    pub fn trouble(&self) -> Option<String> {
        let issuers = self.tokens.issuers.iter();
        let away = issuers.filter(|issuer| match &issuer.check {
            Check::Keys(keys, _) => keys.known().trouble.is_some(),
            Check::Introspection(_) => false,
        });
        let away: Vec<&str> = away.map(|issuer| issuer.name.as_str()).collect();
        (!away.is_empty()).then(|| format!("no keys can be fetched from {}", away.join(", ")))
    }
}

impl AccessTokens {
    /// What a token stands for `now`. Cancellation safe.
    async fn read(
        &self,
        token: &[u8],
        digest: TokenDigest,
        now: Instant,
    ) -> Result<Verified, AuthError> {
        if let Some(known) = self.verified.get(&digest, now) {
            return Ok(known);
        }
        let malformed = |_| AuthError::Token(TokenFault::Malformed);
        let token = str::from_utf8(token).map_err(malformed)?;
        // Boxed: each request would have room for it, and nearly none needs that.
        Box::pin(self.verify(token, digest)).await
    }

    async fn verify(&self, token: &str, digest: TokenDigest) -> Result<Verified, AuthError> {
        let fault = AuthError::Token;
        let Some(jws) = Jws::of(token) else {
            // A token that does not say whose it is can be of one issuer alone: it is shown to no other.
            let asked = self.issuers.iter().find_map(|issuer| match &issuer.check {
                Check::Introspection(asked) => Some(asked),
                Check::Keys(..) => None,
            });
            let asked = asked.ok_or(fault(TokenFault::Malformed))?;
            return asked.ask(token, digest, None).await;
        };
        let named: Named = jws.read().ok_or(fault(TokenFault::Malformed))?;
        let mut issuers = self.issuers.iter();
        let issuer = issuers.find(|issuer| same(&issuer.name, &named.iss));
        let issuer = issuer.ok_or_else(|| {
            let names = self.issuers.iter().map(|issuer| issuer.name.as_str());
            let names: Vec<&str> = names.collect();
            let came = Value::String(named.iss.clone());
            fault(refused::claim(
                TokenFault::Issuer,
                "iss",
                Some(&came),
                &names.join(", "),
            ))
        })?;
        let (keys, rules) = match &issuer.check {
            Check::Keys(keys, rules) => (keys, rules),
            Check::Introspection(asked) => {
                return asked.ask(token, digest, Some(jws.payload())).await;
            }
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
        if !jws.is_of_type(&TYPES) || jws.header.crit.is_some() {
            return Err(fault(TokenFault::Malformed));
        }
        expect_signature(&jws, algorithm, keys).await?;
        let verified = rules.read(jws.payload(), Told::ByToken).map_err(fault)?;
        self.verified.keep(digest, verified.clone());
        Ok(verified)
    }
}

/// Whose a token says that it is.
#[derive(Deserialize)]
struct Named {
    iss: String,
}

async fn expect_signature(
    jws: &Jws<'_>,
    algorithm: SigningAlgorithm,
    source: &KeySource,
) -> Result<(), AuthError> {
    let kid = jws.header.kid.as_deref();
    let unknown = || {
        let came = kid.map(|kid| Value::String(kid.to_owned()));
        let expected = "a key of the issuer's that is for this algorithm";
        AuthError::Token(refused::claim(
            TokenFault::Key,
            "kid",
            came.as_ref(),
            expected,
        ))
    };
    let (mut keys, seen) = source.keys().await.map_err(|_| AWAY)?;
    if keys.candidates(kid, algorithm).next().is_none() {
        keys = source.newer(seen).await.map_err(|none| match none {
            NoKeys::Unknown => unknown(),
            NoKeys::Away => AWAY,
        })?;
    }
    let mut known = false;
    for key in keys.candidates(kid, algorithm) {
        known = true;
        if jws.is_signed_by(key, algorithm) {
            return Ok(());
        }
    }
    Err(match known {
        true => AuthError::Token(TokenFault::Signature),
        false => unknown(),
    })
}

impl TrustedIssuer {
    fn start(
        issuer: &Issuer,
        auth: &Auth,
        scopes: &Arc<Scopes>,
        verified: &Arc<VerifiedTokens>,
        outbound: &Outbound,
    ) -> Result<Self, String> {
        let timeout = auth.request_timeout.get();
        let http = HttpAsker::new(issuer, timeout, outbound);
        let http = http.map_err(|why| format!("{}: {why}", issuer.issuer))?;
        let audience = match issuer.audience.is_empty() {
            true => vec![auth.resource.clone()],
            false => issuer.audience.clone(),
        };
        let rules = ClaimRules::new(
            issuer,
            auth.issuers.len() > 1,
            audience,
            auth.clock_skew.get(),
            auth.cached_for.get(),
            scopes.clone(),
        );
        let name = issuer.issuer.clone();
        let check = match &issuer.introspection {
            Some(asked) => {
                let (asked, verified) = (asked.clone(), Arc::clone(verified));
                let asked = Introspector::new(http, name.clone(), asked, rules, verified);
                Check::Introspection(asked)
            }
            None => {
                let config = KeyConfig {
                    issuer: name.clone(),
                    jwks_url: issuer.jwks_url.clone(),
                    refresh: auth.keys_refresh.get(),
                    interval: auth.keys_interval.get(),
                    stale: auth.keys_stale.get(),
                    timeout,
                };
                Check::Keys(KeySource::start(http, config), rules)
            }
        };
        Ok(Self {
            name,
            algorithms: issuer.algorithms.clone(),
            check,
        })
    }

    fn report(&self) -> IssuerReport {
        let known: Option<Known> = match &self.check {
            Check::Keys(keys, _) => Some(keys.known()),
            Check::Introspection(_) => None,
        };
        let age = known.as_ref().and_then(Known::age);
        IssuerReport {
            issuer: self.name.clone(),
            keys: known.as_ref().map(Known::count),
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
