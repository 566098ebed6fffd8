use serde_json::{Map, Value};
use shoal_ports::TokenFault;

use super::lookup::{find, texts};
use crate::config::{CLIENT_CLAIMS, ResolvedIssuer, same};
use crate::refused;

const AUD: &str = "aud";

pub(super) fn expect(
    issuer: &ResolvedIssuer,
    claims: &Map<String, Value>,
) -> Result<(), TokenFault> {
    expect_client(issuer, claims)?;
    let mut chosen = issuer.audience_claims.iter();
    let chosen = chosen.find_map(|claim| Some((claim.as_str(), find(claims, claim)?)));
    match chosen {
        None => Err(wrong(
            &issuer.audience_claims.join(", "),
            None,
            &issuer.audience,
        )),
        Some((claim, value)) if !CLIENT_CLAIMS.contains(&claim) => {
            expect_one_of(claim, value, issuer.audience.iter())
        }
        // The client's id stands for the audience, but a token whose `aud` names another audience is still refused.
        Some(_) => match find(claims, AUD) {
            Some(value) => expect_one_of(AUD, value, issuer.audience.iter().chain(&issuer.clients)),
            None => Ok(()),
        },
    }
}

fn expect_one_of<'i>(
    claim: &str,
    value: &Value,
    ours: impl Iterator<Item = &'i String> + Clone,
) -> Result<(), TokenFault> {
    let is_ours = |named: &str| ours.clone().any(|ours| same(ours, named));
    match texts(value).any(is_ours) {
        true => Ok(()),
        false => Err(wrong(claim, Some(value), ours)),
    }
}

fn expect_client(issuer: &ResolvedIssuer, claims: &Map<String, Value>) -> Result<(), TokenFault> {
    if issuer.clients.is_empty() {
        return Ok(());
    }
    let named = CLIENT_CLAIMS.into_iter();
    let mut named = named
        .filter_map(|claim| Some((claim, find(claims, claim)?)))
        .peekable();
    if named.peek().is_none() {
        return Err(wrong(&CLIENT_CLAIMS.join(", "), None, &issuer.clients));
    }
    let is_ours = |value: &Value| {
        value
            .as_str()
            .is_some_and(|id| issuer.clients.iter().any(|ours| ours == id))
    };
    match named.find(|(_, value)| !is_ours(value)) {
        Some((claim, value)) => Err(wrong(claim, Some(value), &issuer.clients)),
        None => Ok(()),
    }
}

fn wrong<'i>(
    claim: &str,
    came: Option<&Value>,
    ours: impl IntoIterator<Item = &'i String>,
) -> TokenFault {
    let ours: Vec<&str> = ours.into_iter().map(String::as_str).collect();
    refused::claim(TokenFault::Audience, claim, came, &ours.join(", "))
}
