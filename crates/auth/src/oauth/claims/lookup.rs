//! Reads claims in the forms that issuers use.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Map, Value};
use shoal_ports::TokenFault;

use crate::refused;

pub(super) const DATE: &str = "a number of seconds since 1970";

/// Leaves out `null`. A dotted name that is no claim is a path into objects.
pub(super) fn find<'c>(claims: &'c Map<String, Value>, claim: &str) -> Option<&'c Value> {
    if let Some(value) = claims.get(claim) {
        return (!value.is_null()).then_some(value);
    }
    claim.match_indices('.').find_map(|(at, _)| {
        let inner = claims.get(&claim[..at])?.as_object()?;
        find(inner, &claim[at + 1..])
    })
}

/// Reads a name, which some issuers write as a number.
pub(super) fn name(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Number(number) if number.is_u64() || number.is_i64() => {
            Some(number.to_string().into())
        }
        _ => None,
    }
}

pub(super) fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let several = value.as_array().into_iter().flatten();
    let one = value.as_str();
    one.into_iter().chain(several.filter_map(Value::as_str))
}

/// Reads a date (RFC 7519, 2), perhaps with a fraction. Some issuers write it as text.
pub(super) fn date(name: &str, came: &Value) -> Result<Duration, TokenFault> {
    let read = match came {
        Value::String(text) if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
            text.parse().map(seconds).ok()
        }
        Value::Number(number) => match number.as_u64() {
            Some(whole) => Some(Duration::from_secs(whole)),
            None => number.as_f64().filter(|date| *date >= 0.0).map(seconds),
        },
        _ => None,
    };
    read.ok_or_else(|| refused::claim(TokenFault::Claims, name, Some(came), DATE))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it saturates"
)]
fn seconds(date: f64) -> Duration {
    Duration::from_secs(date as u64)
}
