//! Asks an issuer about tokens (RFC 7662, or Google's token information).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use reqwest::StatusCode;
use serde::Deserialize;
use shoal_ports::{AuthError, TokenDigest, TokenFault, read_text};
use shoal_telemetry::metrics::{AuthServerOutcome, AuthServerRequest, metrics};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::AWAY;
use super::cache::VerifiedTokens;
use super::claims::{BindingSource, ClaimRules, Verified};
use super::flights::Flights;
use super::http::{HttpAsker, NoAnswer};
use super::metadata::{IssuerEndpoint, discover};
use crate::config::{Protocol, ResolvedIntrospection, ResolvedIssuer};
use crate::refused;

const REFUSED_FOR: Duration = Duration::from_secs(10);
const PLACE_FOR: Duration = Duration::from_secs(15 * 60);
/// Maximum concurrent requests: about tokens that were active before, and about others.
const KNOWN_AT_A_TIME: usize = 32;
const OTHERS_AT_A_TIME: usize = 32;
const REFUSALS: usize = 4096;
const KNOWN: usize = 64 << 10;
const LONGEST_SECRET: u64 = 64 << 10;

type ByToken<V> = Cache<TokenDigest, V, UnitWeighter, RandomState>;

pub(crate) struct Introspector {
    issuer: Arc<AskedIssuer>,
    flights: Flights<TokenDigest, Result<Verified, AuthError>>,
}

struct AskedIssuer {
    http: HttpAsker,
    name: String,
    described_as: String,
    asked: ResolvedIntrospection,
    rules: Arc<ClaimRules>,
    endpoint: Mutex<Option<(String, Instant)>>,
    finding: Flights<(), Result<String, NoAnswer>>,
    /// Places for requests about known tokens, which made-up tokens cannot take.
    of_known: Semaphore,
    of_others: Semaphore,
    known: ByToken<()>,
    refused: ByToken<(TokenFault, Instant)>,
    verified: Arc<VerifiedTokens>,
}

#[derive(Deserialize)]
struct Active {
    active: bool,
}

impl Introspector {
    pub(crate) fn new(
        http: HttpAsker,
        issuer: &ResolvedIssuer,
        asked: ResolvedIntrospection,
        rules: Arc<ClaimRules>,
        verified: Arc<VerifiedTokens>,
    ) -> Self {
        Self {
            issuer: Arc::new(AskedIssuer {
                http,
                name: issuer.server.clone(),
                described_as: issuer.described_as.clone(),
                asked,
                rules,
                endpoint: Mutex::default(),
                finding: Flights::default(),
                of_known: Semaphore::new(KNOWN_AT_A_TIME),
                of_others: Semaphore::new(OTHERS_AT_A_TIME),
                known: by_token(KNOWN),
                refused: by_token(REFUSALS),
                verified,
            }),
            flights: Flights::default(),
        }
    }

    /// Concurrent requests share one answer. `claims` are the token's, if it is a JWT. Cancel safe.
    pub(crate) async fn ask(
        &self,
        token: &str,
        digest: TokenDigest,
        claims: Option<&[u8]>,
    ) -> Result<Verified, AuthError> {
        let issuer = &self.issuer;
        if let Some(fault) = issuer.refusal(&digest) {
            return Err(AuthError::Token(fault));
        }
        issuer
            .expect_issued(token, claims)
            .map_err(AuthError::Token)?;
        let attempt = self.flights.join(digest, || {
            let (issuer, token) = (Arc::clone(issuer), token.to_owned());
            async move { issuer.find_out(&token, digest).await }
        });
        attempt.await
    }
}

impl AskedIssuer {
    fn refusal(&self, token: &TokenDigest) -> Option<TokenFault> {
        let (fault, until) = self.refused.get(token)?;
        (Instant::now() < until).then_some(fault)
    }

    fn expect_issued(&self, token: &str, claims: Option<&[u8]>) -> Result<(), TokenFault> {
        // A bearer token's syntax (RFC 6750, 2.1).
        let text = token.trim_end_matches('=');
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
        if text.is_empty() || !text.bytes().all(allowed) {
            return Err(refused::token("characters that no token has"));
        }
        claims.map_or(Ok(()), |claims| self.rules.expect_unexpired(claims))
    }

    async fn find_out(&self, token: &str, digest: TokenDigest) -> Result<Verified, AuthError> {
        if let Some(known) = self.verified.get(&digest, Instant::now()) {
            return Ok(known);
        }
        let _place = self.place(&digest).ok_or(AWAY)?;
        let asked = self.ask(token).await;
        let outcome = match &asked {
            Ok(_) => AuthServerOutcome::Answered,
            Err(_) => AuthServerOutcome::Failed,
        };
        let security = &metrics().security;
        security.asked_server(AuthServerRequest::Introspection, outcome);
        let issuer = &self.name;
        let answer = match asked {
            Ok(Some(text)) => self.rules.read(&text, BindingSource::ByIssuer),
            Ok(None) => Err(TokenFault::Inactive),
            Err(why) => {
                tracing::warn!(issuer, error = %why, "cannot introspect a token");
                return Err(AWAY);
            }
        };
        match &answer {
            Ok(verified) => {
                self.known.insert(digest, ());
                self.verified.keep(digest, verified.clone());
            }
            Err(fault) => {
                self.known.remove(&digest);
                let until = Instant::now() + REFUSED_FOR;
                self.refused.insert(digest, (*fault, until));
            }
        }
        answer.map_err(AuthError::Token)
    }

    fn place(&self, token: &TokenDigest) -> Option<SemaphorePermit<'_>> {
        let of_known = self.known.get(token).map(|()| &self.of_known);
        let places = of_known.into_iter().chain([&self.of_others]);
        places.filter_map(|places| places.try_acquire().ok()).next()
    }

    async fn ask(&self, token: &str) -> Result<Option<Bytes>, String> {
        let endpoint = self.endpoint().await.map_err(|why| why.to_string())?;
        let url = self.http.url(&endpoint).map_err(|why| why.to_string())?;
        match self.asked.protocol {
            Protocol::Rfc7662 => {
                let form = form(&[("token", token), ("token_type_hint", "access_token")]);
                let client = self.client()?;
                let asking = self.http.post(url, form, Some(client));
                let text = asking.await.map_err(|why| why.to_string())?;
                let Ok(Active { active }) = serde_json::from_slice(&text) else {
                    return Err("cannot read the introspection answer".to_owned());
                };
                Ok(active.then_some(text))
            }
            Protocol::TokenInfo => {
                let form = form(&[("access_token", token)]);
                match self.http.post(url, form, None).await {
                    Ok(text) => Ok(Some(text)),
                    Err(NoAnswer::Status(StatusCode::BAD_REQUEST)) => Ok(None),
                    Err(why) => Err(why.to_string()),
                }
            }
        }
    }

    /// Encoded for `Authorization: Basic` (RFC 6749, 2.3.1).
    fn client(&self) -> Result<(String, String), String> {
        let file = &self.asked.client_secret_file;
        let secret = read_text(file, LONGEST_SECRET);
        let secret = secret.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect();
        let secret = encoded(secret.trim_end_matches(['\r', '\n']));
        Ok((encoded(&self.asked.client_id), secret))
    }

    async fn endpoint(&self) -> Result<String, NoAnswer> {
        if let Some(endpoint) = &self.asked.endpoint {
            return Ok(endpoint.clone());
        }
        let known = self.endpoint.lock().clone();
        if let Some((known, _)) = known.filter(|(_, until)| Instant::now() < *until) {
            return Ok(known);
        }
        let finding =
            self.finding.join((), || {
                let (http, issuer) = (self.http.clone(), self.name.clone());
                let described_as = self.described_as.clone();
                async move {
                    discover(&http, &issuer, &described_as, IssuerEndpoint::Introspection).await
                }
            });
        let found = finding.await?;
        *self.endpoint.lock() = Some((found.clone(), Instant::now() + PLACE_FOR));
        Ok(found)
    }
}

fn form(members: &[(&str, &str)]) -> String {
    let mut form = Serializer::new(String::new());
    form.extend_pairs(members).finish()
}

fn by_token<V: Clone>(most: usize) -> ByToken<V> {
    Cache::with(
        most,
        u64::try_from(most).unwrap_or(u64::MAX),
        UnitWeighter,
        RandomState::default(),
        DefaultLifecycle::default(),
    )
}
