//! What a token must say, and what is taken from it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::{Map, Value};
use shoal_ports::{Grant, Memo, Principal, TokenFault};
use shoal_protocol::RawJson;
use tokio::time::Instant;

use crate::config::{Issuer, same};
use crate::oauth::scopes::Scopes;
use crate::oauth::unique::Unique;
use crate::refused;

/// The longest name of a principal, in bytes.
const PRINCIPAL: usize = 512;
/// The longest claims that are kept, in bytes.
pub(crate) const CLAIMS: usize = 16 << 10;
/// Beyond this, a token does not expire: a clock need not count so far.
const FOREVER: Duration = Duration::from_secs(366 * 24 * 3600);

/// The form of a date in a token, for messages.
const DATE: &str = "a number of seconds since 1970";

/// What a token stands for.
#[derive(Clone, Debug)]
pub(crate) struct Verified {
    pub(crate) principal: Principal,
    pub(crate) grant: Arc<Grant>,
    /// What its client must have besides.
    pub(crate) binding: Option<Binding>,
    /// Until when it is believed without another look.
    pub(crate) until: Instant,
}

/// What a token is bound to (RFC 7800), by its SHA-256 in base64url.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// A key, of which each request shows a proof (RFC 9449).
    Key(String),
    /// A certificate, by which the connection began (RFC 8705).
    Certificate(String),
}

/// What tokens of an issuer must say.
pub(crate) struct ClaimRules {
    issuer: String,
    audience: Vec<String>,
    principal_claim: String,
    scopes_claim: Option<String>,
    /// What a principal's name begins with, so that it is another one than any of another issuer.
    qualifier: String,
    skew: Duration,
    cached_for: Duration,
    scopes: Arc<Scopes>,
}

/// Whether a token was looked into here, or its issuer told what is in it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// It must say everything itself.
    ByToken,
    /// The issuer answers for it: it need not repeat who it is, or when the token ends.
    ByIssuer,
}

impl ClaimRules {
    pub(crate) fn new(
        issuer: &Issuer,
        several: bool,
        audience: Vec<String>,
        skew: Duration,
        cached_for: Duration,
        scopes: Arc<Scopes>,
    ) -> Self {
        Self {
            issuer: issuer.issuer.clone(),
            audience,
            principal_claim: issuer.principal_claim.clone(),
            scopes_claim: issuer.scopes_claim.clone(),
            // An issuer has no fragment, so that the first # ends its name.
            qualifier: match several {
                true => format!("{}#", issuer.issuer),
                false => String::new(),
            },
            skew,
            cached_for,
            scopes,
        }
    }

    /// Checks claims, which are believed to be the issuer's, by this machine's clock.
    ///
    /// # Errors
    /// The first that is wrong.
    pub(crate) fn read(&self, text: &[u8], told: Told) -> Result<Verified, TokenFault> {
        self.read_at(text, told, since_epoch())
    }

    /// Checks claims for which nobody answers yet: whether a token with them can be good now.
    ///
    /// # Errors
    /// Its time is over or has not come, or they cannot be read.
    pub(crate) fn expect_unexpired(&self, text: &[u8]) -> Result<(), TokenFault> {
        let Unique(claims) = serde_json::from_slice(text).map_err(|_| TokenFault::Malformed)?;
        let until = self.expect_in_time(&claims, Told::ByIssuer, since_epoch());
        until.map(|_| ())
    }

    /// The same at a time since 1970.
    fn read_at(&self, text: &[u8], told: Told, now: Duration) -> Result<Verified, TokenFault> {
        if text.len() > CLAIMS {
            return Err(TokenFault::TooLong);
        }
        let Unique(claims) = serde_json::from_slice(text).map_err(|_| TokenFault::Malformed)?;
        match claims.get("iss") {
            Some(Value::String(issuer)) if same(issuer, &self.issuer) => {}
            None if told == Told::ByIssuer => {}
            came => {
                let wrong = TokenFault::Issuer;
                return Err(refused::claim(wrong, "iss", came, &self.issuer));
            }
        }
        let audience = claims.get("aud");
        if !self.is_for_us(audience) {
            let (wrong, ours) = (TokenFault::Audience, self.audience.join(", "));
            return Err(refused::claim(wrong, "aud", audience, &ours));
        }
        let until = self.expect_in_time(&claims, told, now)?;
        let believed = Instant::now() + self.cached_for;
        let principal = self.principal(&claims)?;
        let binding = bound_to(&claims)?;
        let grant = Grant {
            scopes: self.scopes.granted(self.scopes_of(&claims)),
            claims: self.told(text, claims)?,
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

    /// The claims for those who ask further. The issuer is always named: where it left that out, it was the one to be asked.
    fn told(&self, text: &[u8], mut claims: Map<String, Value>) -> Result<RawJson, TokenFault> {
        if claims.contains_key("iss") {
            let text = Bytes::copy_from_slice(text);
            return RawJson::parse_text(text).map_err(|_| TokenFault::Malformed);
        }
        claims.insert("iss".to_owned(), self.issuer.as_str().into());
        Ok(RawJson::of(&claims))
    }

    fn is_for_us(&self, audience: Option<&Value>) -> bool {
        let ours = |named: &Value| {
            let named = named.as_str();
            named.is_some_and(|named| self.audience.iter().any(|ours| same(ours, named)))
        };
        match audience {
            Some(Value::Array(several)) => several.iter().any(ours),
            Some(one) => ours(one),
            None => false,
        }
    }

    /// When the token ends, by this machine's monotonic clock.
    fn expect_in_time(
        &self,
        claims: &Map<String, Value>,
        told: Told,
        now: Duration,
    ) -> Result<Option<Instant>, TokenFault> {
        if let Some(from) = claims.get("nbf")
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
        let Some(end) = claims.get("exp") else {
            return match told {
                Told::ByIssuer => Ok(None),
                Told::ByToken => Err(refused::claim(TokenFault::Claims, "exp", None, DATE)),
            };
        };
        // To the fraction of a second: what is left is counted from now on by a clock that has one.
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

    fn principal(&self, claims: &Map<String, Value>) -> Result<Principal, TokenFault> {
        let came = claims.get(&self.principal_claim);
        let wrong = || {
            let expected = "a text that can name a principal";
            refused::claim(TokenFault::Claims, &self.principal_claim, came, expected)
        };
        let name = came.and_then(Value::as_str).ok_or_else(wrong)?;
        let fits = (1..=PRINCIPAL).contains(&name.len()) && !name.chars().any(char::is_control);
        let principal = Principal::new(format!("{}{name}", self.qualifier));
        match fits && !principal.is_reserved() {
            true => Ok(principal),
            false => Err(wrong()),
        }
    }

    /// Scopes are one text with spaces (RFC 9068), or a list as some servers have it.
    fn scopes_of<'c>(&self, claims: &'c Map<String, Value>) -> Vec<&'c str> {
        let value = match &self.scopes_claim {
            Some(claim) => claims.get(claim),
            None => claims.get("scope").or_else(|| claims.get("scp")),
        };
        match value {
            Some(Value::String(text)) => text.split(' ').filter(|one| !one.is_empty()).collect(),
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

/// The time of day, by this machine's clock.
fn since_epoch() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap_or_default()
}

/// A date of a claim, which may have a fraction (RFC 7519, 2).
fn date(name: &str, came: &Value) -> Result<Duration, TokenFault> {
    let whole = came.as_u64();
    let date = came
        .as_f64()
        .filter(|date| date.is_finite() && *date >= 0.0);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it saturates"
    )]
    whole
        .or(date.map(|date| date as u64))
        .map(Duration::from_secs)
        .ok_or_else(|| refused::claim(TokenFault::Claims, name, Some(came), DATE))
}

/// What a token is bound to. A binding that cannot be checked is as good as a wrong one, and so are two.
fn bound_to(claims: &Map<String, Value>) -> Result<Option<Binding>, TokenFault> {
    let Some(confirmation) = claims.get("cnf").filter(|it| !it.is_null()) else {
        return Ok(None);
    };
    let mut members = confirmation.as_object().into_iter().flatten();
    match (members.next(), members.next()) {
        (Some((name, Value::String(of))), None) => match name.as_str() {
            "jkt" => Ok(Some(Binding::Key(of.clone()))),
            "x5t#S256" => Ok(Some(Binding::Certificate(of.clone()))),
            _ => Err(TokenFault::Binding),
        },
        _ => Err(TokenFault::Binding),
    }
}

#[cfg(test)]
mod tests;
