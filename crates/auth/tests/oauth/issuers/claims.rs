//! Claims that operators choose, without `issuer_kind`.

use serde_json::{Value, json};
use shoal_auth::config::Issuer;
use shoal_ports::TokenFault;

use super::{Fake, Trusting, with};
use crate::setting::RESOURCE;

async fn fake() -> Fake {
    Fake::at("", "/.well-known/openid-configuration").await
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn plain(fake: &Fake) -> Issuer {
    Issuer {
        issuer: fake.issuer.clone(),
        ..Issuer::default()
    }
}

fn claims() -> Value {
    json!({ "aud": RESOURCE, "sub": "alice", "scope": "mcp" })
}

#[tokio::test]
async fn another_claim_may_be_the_audience() {
    let fake = fake().await;
    let trusting = Trusting::new(Issuer {
        audience_claims: list(&["resource", "aud"]),
        ..plain(&fake)
    })
    .await;
    for (changes, taken) in [
        (json!({ "aud": "client", "resource": RESOURCE }), true),
        (
            json!({ "aud": "client", "resource": ["other", RESOURCE] }),
            true,
        ),
        (json!({}), true),
        (json!({ "resource": "https://other.example.com" }), false),
        (json!({ "resource": [] }), false),
        (json!({ "aud": null }), false),
    ] {
        let token = fake.token(with(&claims(), changes.clone()));
        match taken {
            true => assert_eq!(trusting.principal(&token).await, "alice", "{changes}"),
            false => trusting.refuses(&token, TokenFault::Audience).await,
        }
    }
}

#[tokio::test]
async fn clients_that_are_not_listed_are_refused_by_whatever_claim_names_them() {
    let fake = fake().await;
    let trusting = Trusting::new(Issuer {
        clients: list(&["ours"]),
        ..plain(&fake)
    })
    .await;
    for claim in ["client_id", "azp", "cid", "appid"] {
        let token = fake.token(with(&claims(), json!({ (claim): "ours" })));
        assert_eq!(trusting.principal(&token).await, "alice");
        let token = fake.token(with(&claims(), json!({ (claim): "other" })));
        trusting.refuses(&token, TokenFault::Audience).await;
    }
    trusting
        .refuses(&fake.token(claims()), TokenFault::Audience)
        .await;
    let two = with(&claims(), json!({ "client_id": "ours", "azp": "other" }));
    trusting
        .refuses(&fake.token(two), TokenFault::Audience)
        .await;
    let foreign = with(
        &claims(),
        json!({ "azp": "ours", "aud": "https://other.example.com" }),
    );
    trusting
        .refuses(&fake.token(foreign), TokenFault::Audience)
        .await;
}

#[tokio::test]
async fn a_principal_is_named_by_the_first_claim_that_is_there() {
    let fake = fake().await;
    let trusting = Trusting::new(Issuer {
        principal_claims: list(&["https://example.com/id", "user.name", "sub"]),
        ..plain(&fake)
    })
    .await;
    for (changes, due) in [
        (
            json!({ "https://example.com/id": 7, "user": { "name": "bob" } }),
            "7",
        ),
        (json!({ "user": { "name": "bob" } }), "user.name:bob"),
        (
            json!({ "https://example.com/id": "", "user": { "name": null } }),
            "sub:alice",
        ),
        (json!({ "user": "bob" }), "sub:alice"),
    ] {
        let token = fake.token(with(&claims(), changes));
        assert_eq!(trusting.principal(&token).await, due);
    }
    for changes in [
        json!({ "sub": null }),
        json!({ "https://example.com/id": "sub:alice" }),
        json!({ "https://example.com/id": true }),
    ] {
        trusting
            .refuses(&fake.token(with(&claims(), changes)), TokenFault::Claims)
            .await;
    }
}

#[tokio::test]
async fn all_claims_with_scopes_count_and_others_must_say_what_is_required() {
    let fake = fake().await;
    let trusting = Trusting::new(Issuer {
        scope_claims: list(&[
            "scope",
            "resource_access.my.client.roles",
            "https://example.com/roles",
        ]),
        required_claims: [
            ("amr".to_owned(), list(&["mfa", "hwk"])),
            ("level".to_owned(), list(&["2"])),
        ]
        .into(),
        ..plain(&fake)
    })
    .await;
    let strong = with(
        &claims(),
        json!({ "amr": ["pwd", "mfa"], "level": 2, "scope": "" }),
    );
    let nested = json!({ "resource_access": { "my.client": { "roles": ["mcp", "a"] } }, "https://example.com/roles": "b c" });
    let shown = trusting
        .show(&fake.token(with(&strong, nested.clone())))
        .await;
    let grant = shown.unwrap().grant.unwrap();
    assert!(
        ["mcp", "a", "b", "c"]
            .into_iter()
            .all(|scope| grant.has(scope))
    );
    for changes in [
        json!({ "amr": "pwd" }),
        json!({ "amr": null }),
        json!({ "level": 20 }),
        json!({ "level": { "2": 2 } }),
    ] {
        let weak = with(&with(&strong, nested.clone()), changes);
        trusting
            .refuses(&fake.token(weak), TokenFault::Claims)
            .await;
    }
}
