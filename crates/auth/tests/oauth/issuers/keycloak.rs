use serde_json::{Value, json};
use shoal_auth::config::{Issuer, IssuerKind};
use shoal_auth::fixture::Told;
use shoal_ports::TokenFault;

use super::{Fake, Trusting, refusal, with};
use crate::setting::RESOURCE;

const METADATA: &str = "/realms/a/.well-known/openid-configuration";

async fn fake() -> Fake {
    let fake = Fake::at("/realms/a", METADATA).await;
    let root = "/.well-known/oauth-authorization-server/realms/a";
    fake.server.tell(root, refusal(403));
    let root = "/.well-known/openid-configuration/realms/a";
    fake.server.tell(root, Told::new(200, "<!DOCTYPE html>"));
    fake
}

fn user() -> Value {
    json!({
        "jti": "onrtro:1", "aud": [RESOURCE, "account"], "sub": "8befeac4-8963-49da-a9ac-f310e8d922d8", "typ": "Bearer",
        "azp": "claude", "sid": "54db1502", "acr": "1", "scope": "openid email profile", "preferred_username": "alice",
        "realm_access": { "roles": ["offline_access", "mcp"] },
        "resource_access": { "account": { "roles": ["view-profile"] } },
    })
}

#[tokio::test]
async fn roles_of_the_realm_count_and_the_audience_is_one_of_several() {
    let fake = fake().await;
    let trusting = Trusting::new(fake.settings(IssuerKind::Keycloak)).await;
    let shown = trusting.show(&fake.token(user())).await.unwrap();
    assert_eq!(
        shown.principal.as_str(),
        "8befeac4-8963-49da-a9ac-f310e8d922d8"
    );
    assert!(shown.grant.unwrap().has("profile"));
    let scope = json!({ "realm_access": null, "scope": "openid mcp", "aud": RESOURCE });
    trusting
        .show(&fake.token(with(&user(), scope)))
        .await
        .unwrap();

    for aud in [json!("account"), Value::Null, json!(["account", "broker"])] {
        let token = fake.token(with(&user(), json!({ "aud": aud })));
        trusting.refuses(&token, TokenFault::Audience).await;
    }
    for typ in [json!("ID"), json!("Refresh"), json!("Logout"), Value::Null] {
        let token = fake.token(with(&user(), json!({ "typ": typ })));
        trusting.refuses(&token, TokenFault::Claims).await;
    }
}

#[tokio::test]
async fn a_service_account_is_named_by_its_client_where_its_token_names_nobody() {
    let fake = fake().await;
    let trusting = Trusting::new(fake.settings(IssuerKind::Keycloak)).await;
    let lightweight = json!({
        "jti": "trrtcc:1", "aud": RESOURCE, "typ": "Bearer", "azp": "reports", "acr": "1", "scope": "mcp",
    });
    let token = fake.token(lightweight.clone());
    assert_eq!(trusting.principal(&token).await, "azp:reports");
    let mapped = with(&lightweight, json!({ "client_id": "reports" }));
    assert_eq!(
        trusting.principal(&fake.token(mapped)).await,
        "client_id:reports"
    );
    let whole = with(
        &lightweight,
        json!({ "sub": "5c0e", "client_id": "reports" }),
    );
    assert_eq!(trusting.principal(&fake.token(whole)).await, "5c0e");

    let session = with(&lightweight, json!({ "sid": "54db1502" }));
    trusting
        .refuses(&fake.token(session), TokenFault::Claims)
        .await;
    let disguised = with(&user(), json!({ "sub": "azp:reports" }));
    trusting
        .refuses(&fake.token(disguised), TokenFault::Claims)
        .await;
}

#[tokio::test]
async fn a_realm_without_an_audience_of_ours_is_bound_to_its_clients() {
    let fake = fake().await;
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    for audience_claims in [list(&[]), list(&["azp"])] {
        let trusting = Trusting::new(Issuer {
            audience: list(&["account"]),
            clients: list(&["claude", "cursor"]),
            audience_claims,
            ..fake.settings(IssuerKind::Keycloak)
        })
        .await;
        let of =
            |aud: Value, azp: &str| fake.token(with(&user(), json!({ "aud": aud, "azp": azp })));
        for client in ["claude", "cursor"] {
            trusting.show(&of(json!("account"), client)).await.unwrap();
        }
        trusting
            .refuses(&of(json!("account"), "other"), TokenFault::Audience)
            .await;
        trusting
            .refuses(&of(json!("billing"), "claude"), TokenFault::Audience)
            .await;
        let nobodys = with(&user(), json!({ "aud": "account", "azp": null }));
        trusting
            .refuses(&fake.token(nobodys), TokenFault::Audience)
            .await;
    }
}
