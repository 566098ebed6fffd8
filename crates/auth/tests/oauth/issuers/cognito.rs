use serde_json::{Value, json};
use shoal_auth::config::{Issuer, IssuerKind};
use shoal_auth::fixture::Told;
use shoal_ports::TokenFault;

use super::{Fake, Trusting, refusal, with};
use crate::setting::RESOURCE;

const POOL: &str = "/us-west-2_EXAMPLE";

async fn fake() -> Fake {
    let fake = Fake::at(POOL, &format!("{POOL}/.well-known/openid-configuration")).await;
    let root = format!("/.well-known/oauth-authorization-server{POOL}");
    fake.server.tell(&root, refusal(400));
    let root = format!("/.well-known/openid-configuration{POOL}");
    fake.server.tell(&root, Told::new(400, ""));
    fake
}

fn user() -> Value {
    json!({
        "sub": "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee", "client_id": "1example23456789", "cognito:groups": ["testgroup"],
        "version": 2, "token_use": "access", "scope": "phone openid mcp", "auth_time": 1, "jti": "a", "username": "alice",
        "origin_jti": "b", "event_id": "c",
    })
}

#[tokio::test]
async fn a_token_without_an_audience_is_bound_to_the_clients_that_are_listed() {
    let fake = fake().await;
    let trusting = Trusting::new(Issuer {
        clients: vec!["1example23456789".to_owned()],
        ..fake.settings(IssuerKind::Cognito)
    })
    .await;
    let header = json!({ "kid": "first", "alg": "RS256" });
    let name = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";
    assert_eq!(
        trusting.principal(&fake.signed(&header, user())).await,
        name
    );
    let machine = with(
        &user(),
        json!({ "sub": "1example23456789", "username": null, "auth_time": null }),
    );
    assert_eq!(
        trusting.principal(&fake.token(machine)).await,
        "1example23456789"
    );
    for (aud, taken) in [(RESOURCE, true), ("https://other.example.com", false)] {
        let token = fake.token(with(&user(), json!({ "aud": aud })));
        match taken {
            true => assert_eq!(trusting.principal(&token).await, name),
            false => trusting.refuses(&token, TokenFault::Audience).await,
        }
    }
    let other = with(&user(), json!({ "client_id": "another" }));
    trusting
        .refuses(&fake.token(other), TokenFault::Audience)
        .await;
    let nobodys = with(&user(), json!({ "client_id": null }));
    trusting
        .refuses(&fake.token(nobodys), TokenFault::Audience)
        .await;
}

#[tokio::test]
async fn an_id_token_is_no_access_token() {
    let fake = fake().await;
    let trusting = Trusting::new(Issuer {
        audience: vec!["1example23456789".to_owned()],
        audience_claims: vec!["aud".to_owned()],
        ..fake.settings(IssuerKind::Cognito)
    })
    .await;
    let id = json!({ "client_id": null, "aud": "1example23456789", "token_use": "id", "email": "alice@example.com" });
    let id = with(&user(), id);
    trusting
        .refuses(&fake.token(id.clone()), TokenFault::Claims)
        .await;
    let trusting = Trusting::new(Issuer {
        audience: vec!["1example23456789".to_owned()],
        audience_claims: vec!["aud".to_owned()],
        required_claims: [("token_use".to_owned(), vec!["id".to_owned()])].into(),
        ..fake.settings(IssuerKind::Cognito)
    })
    .await;
    trusting.show(&fake.token(id)).await.unwrap();
    trusting
        .refuses(
            &fake.token(with(&user(), json!({ "aud": "1example23456789" }))),
            TokenFault::Claims,
        )
        .await;
}
