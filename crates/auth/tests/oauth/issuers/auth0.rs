use serde_json::json;
use shoal_auth::config::{Issuer, IssuerKind};
use shoal_ports::TokenFault;

use super::{Fake, Trusting, with};
use crate::setting::RESOURCE;

const METADATA: &str = "/.well-known/openid-configuration";

#[tokio::test]
async fn permissions_count_and_the_audience_is_one_of_several() {
    let fake = Fake::at("/", METADATA).await;
    let host = fake.server.issuer.clone();
    let trusting = Trusting::new(Issuer {
        issuer: host.clone(),
        ..fake.settings(IssuerKind::Auth0)
    })
    .await;
    let user = json!({
        "sub": "auth0|507f1f77bcf86cd799439011", "aud": [RESOURCE, format!("{host}/userinfo")], "azp": "my_client_id",
        "scope": "openid profile email", "permissions": ["mcp", "write:mcp"], "org_id": "org_9",
    });
    let shown = trusting.show(&fake.token(user.clone())).await.unwrap();
    assert_eq!(shown.principal.as_str(), "auth0|507f1f77bcf86cd799439011");
    let grant = shown.grant.unwrap();
    assert!(grant.has("openid") && grant.has("write:mcp"));
    let header = json!({ "typ": "at+jwt", "alg": "RS256", "kid": "first" });
    let machine = json!({
        "sub": "my_client_id@clients", "aud": RESOURCE, "azp": null, "client_id": "my_client_id", "gty": "client-credentials",
        "scope": "", "permissions": ["mcp"], "jti": "a",
    });
    let machine = fake.signed(&header, with(&user, machine));
    assert_eq!(trusting.principal(&machine).await, "my_client_id@clients");

    let userinfo = with(&user, json!({ "aud": format!("{host}/userinfo") }));
    trusting
        .refuses(&fake.token(userinfo), TokenFault::Audience)
        .await;
    for token in ["eyJhbGciOiJkaXIifQ..iv.text.tag", "opaque"] {
        trusting.refuses(token, TokenFault::Malformed).await;
    }
}

#[tokio::test]
async fn scopes_alone_count_where_that_is_set() {
    let fake = Fake::at("/", METADATA).await;
    let trusting = Trusting::new(Issuer {
        scope_claims: vec!["scope".to_owned()],
        ..fake.settings(IssuerKind::Auth0)
    })
    .await;
    let claims =
        json!({ "sub": "auth0|1", "aud": RESOURCE, "scope": "openid", "permissions": ["mcp"] });
    let weak = trusting.show(&fake.token(claims.clone())).await;
    assert!(weak.is_err(), "{weak:?}");
    let strong = fake.token(with(&claims, json!({ "scope": "openid mcp" })));
    assert_eq!(trusting.principal(&strong).await, "auth0|1");
}
