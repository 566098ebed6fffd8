use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_ports::TokenFault;
use tokio::time::Instant;

use super::{BindingSource, ClaimRules, Verified};
use crate::config::Issuer;
use crate::oauth::scopes::Scopes;

const NOW: u64 = 1_000_000;
const ISSUER: &str = "https://id.example.com";
const AUDIENCE: &str = "https://mcp.example.com/mcp";

fn rules(several: bool) -> ClaimRules {
    let issuer = Issuer {
        issuer: ISSUER.to_owned(),
        ..Issuer::default()
    };
    let skew = Duration::from_secs(60);
    let issuer = issuer.resolved(AUDIENCE).unwrap();
    let cached_for = Duration::from_secs(300);
    ClaimRules::new(
        issuer,
        several,
        skew,
        cached_for,
        Arc::new(Scopes::default()),
    )
}

fn sound() -> Value {
    json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": NOW + 600, "scope": "a b" })
}

fn read(claims: &Value) -> Result<Verified, TokenFault> {
    rules(false).read_at(
        claims.to_string().as_bytes(),
        BindingSource::ByToken,
        Duration::from_secs(NOW),
    )
}

#[test]
fn a_sound_token_names_its_principal_and_scopes() {
    let verified = read(&sound()).unwrap();
    assert_eq!(verified.principal.as_str(), "alice");
    assert!(verified.grant.has("a") && verified.grant.has("b") && !verified.grant.has("a b"));
    assert_eq!(verified.binding, None);
    let text = sound().to_string();
    let several = rules(true).read_at(
        text.as_bytes(),
        BindingSource::ByToken,
        Duration::from_secs(NOW),
    );
    let several = several.unwrap().principal;
    assert_eq!(several.as_str(), "https://id.example.com#alice");
}

#[test]
fn whatever_is_missing_or_wrong_is_told_apart() {
    let edge = 60;
    for (claim, value, due) in [
        (
            "iss",
            json!("https://id.example.com/other"),
            Some(TokenFault::Issuer),
        ),
        ("iss", Value::Null, Some(TokenFault::Issuer)),
        (
            "aud",
            json!("https://mcp.example.com"),
            Some(TokenFault::Audience),
        ),
        ("aud", json!(["other", AUDIENCE]), None),
        ("aud", json!([]), Some(TokenFault::Audience)),
        ("aud", Value::Null, Some(TokenFault::Audience)),
        ("exp", json!(NOW - edge), Some(TokenFault::Expired)),
        ("exp", json!(NOW - edge + 1), None),
        ("exp", json!(NOW as f64 + 0.5), None),
        ("exp", json!(u64::MAX), None),
        ("exp", json!(-5), Some(TokenFault::Claims)),
        ("exp", json!("soon"), Some(TokenFault::Claims)),
        ("exp", Value::Null, Some(TokenFault::Claims)),
        ("nbf", json!(NOW + edge), None),
        ("nbf", json!(NOW + edge + 1), Some(TokenFault::NotYet)),
        ("sub", json!(""), Some(TokenFault::Claims)),
        ("sub", json!("a\nb"), Some(TokenFault::Claims)),
        ("sub", json!(7), None),
        ("sub", json!("x".repeat(513)), Some(TokenFault::Claims)),
        (
            "more",
            json!("x".repeat(super::CLAIMS)),
            Some(TokenFault::TooLong),
        ),
        ("cnf", json!({ "x5t#S256": 7 }), Some(TokenFault::Binding)),
        (
            "cnf",
            json!({ "jkt": "a", "x5t#S256": "b" }),
            Some(TokenFault::Binding),
        ),
        ("cnf", json!({}), Some(TokenFault::Binding)),
        ("cnf", json!({ "kid": "a" }), Some(TokenFault::Binding)),
        ("cnf", json!({ "jkt": "a" }), None),
        ("cnf", json!({ "x5t#S256": "a" }), None),
    ] {
        let mut claims = sound();
        claims[claim] = value.clone();
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(claim);
        }
        assert_eq!(read(&claims).err(), due, "{claim}: {value}");
    }
}

#[test]
fn a_token_ends_within_a_second_where_that_begins_within_one() {
    let now = Duration::from_millis(NOW * 1000 + 900);
    let mut claims = sound();
    claims["exp"] = json!(NOW - 58);
    let read = |claims: &Value| {
        let text = claims.to_string();
        rules(false).read_at(text.as_bytes(), BindingSource::ByToken, now)
    };
    let before = Instant::now();
    let until = read(&claims).unwrap().grant.until.unwrap();
    let left = Duration::from_millis(1100);
    assert!(before + left <= until && until <= Instant::now() + left);
    claims["exp"] = json!(NOW - 60);
    assert_eq!(read(&claims).err(), Some(TokenFault::Expired));
}

#[test]
fn what_the_issuer_itself_tells_need_not_be_repeated() {
    let mut claims = sound();
    claims.as_object_mut().unwrap().remove("exp");
    claims.as_object_mut().unwrap().remove("iss");
    let told = rules(false).read_at(
        claims.to_string().as_bytes(),
        BindingSource::ByIssuer,
        Duration::from_secs(NOW),
    );
    let grant = told.unwrap().grant;
    assert_eq!(grant.until, None);
    let issuer = grant.claims.member("iss").unwrap();
    assert_eq!(issuer.string().as_deref(), Some(ISSUER));
    claims["iss"] = json!("https://other.example.com");
    let told = rules(false).read_at(
        claims.to_string().as_bytes(),
        BindingSource::ByIssuer,
        Duration::from_secs(NOW),
    );
    assert_eq!(told.err(), Some(TokenFault::Issuer));
}

#[test]
fn scopes_may_be_a_list_or_another_claim() {
    let mut claims = sound();
    claims["scope"] = json!(["c"]);
    assert!(read(&claims).unwrap().grant.has("c"));
    claims.as_object_mut().unwrap().remove("scope");
    claims["scp"] = json!("d e");
    assert!(read(&claims).unwrap().grant.has("e"));
}

#[test]
fn nobody_is_named_as_shoal_itself() {
    for name in ["anonymous", "shoal-console"] {
        let mut claims = sound();
        claims["sub"] = json!(name);
        assert_eq!(read(&claims).unwrap_err(), TokenFault::Claims, "{name}");
    }
}
