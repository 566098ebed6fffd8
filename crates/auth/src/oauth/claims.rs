mod audience;
mod lookup;
mod principal;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::{Map, Value};
use shoal_ports::{Grant, Memo, Principal, TokenFault};
use shoal_protocol::RawJson;
use tokio::time::Instant;

use self::lookup::{DATE, date, find, name, texts};
use crate::config::ResolvedIssuer;
use crate::oauth::names::IssuerNames;
use crate::oauth::scopes::Scopes;
use crate::oauth::unique::Unique;
use crate::refused;

/// Maximum bytes of claims.
pub(crate) const CLAIMS: usize = 16 << 10;
/// Maximum time until an expiry. Later expiries are cut to it, so that they fit into the clock.
const FOREVER: Duration = Duration::from_secs(366 * 24 * 3600);

#[derive(Clone, Debug)]
pub(crate) struct Verified {
    pub(crate) principal: Principal,
    pub(crate) grant: Arc<Grant>,
    pub(crate) binding: Option<TokenBinding>,
    pub(crate) until: Instant,
}

/// A token's key or certificate, by SHA-256 in base64url (RFC 7800).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenBinding {
    /// Each request must prove the key (RFC 9449).
    Key(String),
    /// The client's connection must have the certificate (RFC 8705).
    Certificate(String),
}

pub(crate) struct ClaimRules {
    issuer: ResolvedIssuer,
    names: IssuerNames,
    /// Whether names of principals begin with their issuer, so that those of different issuers differ.
    is_qualified: bool,
    skew: Duration,
    cached_for: Duration,
    scopes: Arc<Scopes>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BindingSource {
    ByToken,
    /// The issuer's own answer, which may lack issuer and expiry.
    ByIssuer,
}

impl ClaimRules {
    pub(crate) fn new(
        issuer: ResolvedIssuer,
        is_one_of_several: bool,
        skew: Duration,
        cached_for: Duration,
        scopes: Arc<Scopes>,
    ) -> Self {
        Self {
            names: IssuerNames::new(&issuer),
            is_qualified: is_one_of_several || issuer.has_several_tenants,
            issuer,
            skew,
            cached_for,
            scopes,
        }
    }

    pub(crate) fn names(&self) -> &IssuerNames {
        &self.names
    }

    /// The token's tenant, if several tenants share the keys.
    pub(crate) fn tenant(&self, iss: &str) -> Option<&str> {
        let tenant = self.names.named(iss)?;
        self.issuer.has_several_tenants.then_some(&**tenant)
    }

    /// Checks the claims by this machine's clock.
    pub(crate) fn read(&self, text: &[u8], source: BindingSource) -> Result<Verified, TokenFault> {
        self.read_at(text, source, since_epoch())
    }

    /// The claims are untrusted.
    ///
    /// # Errors
    /// The token is expired, not valid yet, or unreadable.
    pub(crate) fn expect_unexpired(&self, text: &[u8]) -> Result<(), TokenFault> {
        let Unique(claims) = serde_json::from_slice(text).map_err(unreadable)?;
        let until = self.expect_in_time(&claims, BindingSource::ByIssuer, since_epoch());
        until.map(|_| ())
    }

    fn read_at(
        &self,
        text: &[u8],
        source: BindingSource,
        now: Duration,
    ) -> Result<Verified, TokenFault> {
        if text.len() > CLAIMS {
            return Err(TokenFault::TooLong);
        }
        let Unique(claims) = serde_json::from_slice(text).map_err(unreadable)?;
        let issuer = self.issuer_of(&claims, source)?;
        audience::expect(&self.issuer, &claims)?;
        let until = self.expect_in_time(&claims, source, now)?;
        let believed = Instant::now() + self.cached_for;
        // The first # ends the issuer in the principal's name, because issuers have no fragment.
        let qualifier = match self.is_qualified {
            true => format!("{issuer}#"),
            false => String::new(),
        };
        let principal = principal::of(&claims, &self.issuer.principal_claims, &qualifier)?;
        self.expect_required(&claims)?;
        let binding = bound_to(&claims)?;
        let grant = Grant {
            scopes: self.scopes.granted(self.scopes_of(&claims)),
            claims: told_further(text, claims, issuer)?,
            until,
            read: Memo::default(),
        };
        Ok(Verified {
            principal,
            grant: Arc::new(grant),
            binding,
            until: until.map_or(believed, |until| until.min(believed)),
        })
    }

    fn issuer_of(
        &self,
        claims: &Map<String, Value>,
        source: BindingSource,
    ) -> Result<&Arc<str>, TokenFault> {
        let came = find(claims, "iss");
        let issuer = match came {
            Some(named) => named.as_str().and_then(|named| self.names.named(named)),
            None if source == BindingSource::ByIssuer => self.names.sole(),
            None => None,
        };
        let wrong = || refused::claim(TokenFault::Issuer, "iss", came, self.names.listed());
        issuer.ok_or_else(wrong)
    }

    fn expect_required(&self, claims: &Map<String, Value>) -> Result<(), TokenFault> {
        for (claim, due) in &self.issuer.required_claims {
            let came = find(claims, claim);
            let mut said = came.into_iter().flat_map(texts);
            let number = came.and_then(name);
            let fits = |text: &str| due.iter().any(|due| due == text);
            if !said.any(fits) && !number.as_deref().is_some_and(fits) {
                let due = due.join(", ");
                return Err(refused::claim(TokenFault::Claims, claim, came, &due));
            }
        }
        Ok(())
    }

    fn expect_in_time(
        &self,
        claims: &Map<String, Value>,
        source: BindingSource,
        now: Duration,
    ) -> Result<Option<Instant>, TokenFault> {
        if let Some(from) = find(claims, "nbf")
            && date("nbf", from)? > now.saturating_add(self.skew)
        {
            let expected = format!("at most {}, the time here", now.as_secs());
            return Err(refused::claim(
                TokenFault::NotYet,
                "nbf",
                Some(from),
                &expected,
            ));
        }
        let Some(end) = find(claims, "exp") else {
            return match source {
                BindingSource::ByIssuer => Ok(None),
                BindingSource::ByToken => {
                    Err(refused::claim(TokenFault::Claims, "exp", None, DATE))
                }
            };
        };
        let left = date("exp", end)?
            .saturating_add(self.skew)
            .saturating_sub(now);
        if left.is_zero() {
            let expected = format!("more than {}, the time here", now.as_secs());
            return Err(refused::claim(
                TokenFault::Expired,
                "exp",
                Some(end),
                &expected,
            ));
        }
        Ok(Some(Instant::now() + left.min(FOREVER)))
    }

    fn scopes_of<'c>(&self, claims: &'c Map<String, Value>) -> Vec<&'c str> {
        let values = self.issuer.scope_claims.iter();
        let values = values.filter_map(|claim| find(claims, claim));
        let mut scopes = Vec::new();
        for value in values {
            match value {
                Value::String(text) => scopes.extend(text.split(' ').filter(|one| !one.is_empty())),
                value => scopes.extend(texts(value)),
            }
        }
        scopes
    }
}

fn told_further(
    text: &[u8],
    mut claims: Map<String, Value>,
    issuer: &str,
) -> Result<RawJson, TokenFault> {
    if find(&claims, "iss").is_some() {
        return RawJson::parse_text(Bytes::copy_from_slice(text)).map_err(unreadable);
    }
    claims.insert("iss".to_owned(), issuer.into());
    Ok(RawJson::of(&claims))
}

fn unreadable<E>(_: E) -> TokenFault {
    refused::token("claims that are not a JSON object, or a repeated claim")
}

fn since_epoch() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap_or_default()
}

/// Refuses several bindings, and one that Shoal cannot check.
fn bound_to(claims: &Map<String, Value>) -> Result<Option<TokenBinding>, TokenFault> {
    let Some(confirmation) = claims.get("cnf").filter(|it| !it.is_null()) else {
        return Ok(None);
    };
    let mut members = confirmation.as_object().into_iter().flatten();
    match (members.next(), members.next()) {
        (Some((name, Value::String(of))), None) => match name.as_str() {
            "jkt" => Ok(Some(TokenBinding::Key(of.clone()))),
            "x5t#S256" => Ok(Some(TokenBinding::Certificate(of.clone()))),
            _ => Err(TokenFault::Binding),
        },
        _ => Err(TokenFault::Binding),
    }
}

#[cfg(test)]
mod tests;
