use serde_json::json;
use shoal_auth::config::{Issuer, IssuerKind};
use shoal_ports::TokenFault;

use super::{Fake, Trusting, with};

#[tokio::test]
async fn scopes_are_a_list_and_the_audience_is_that_of_the_authorization_server() {
    let path = "/oauth2/default";
    let fake = Fake::at(path, &format!("{path}/.well-known/openid-configuration")).await;
    let trusting = Trusting::new(Issuer {
        audience: vec!["api://default".to_owned()],
        ..fake.settings(IssuerKind::Okta)
    })
    .await;
    let header = json!({ "kid": "first", "alg": "RS256" });
    let user = json!({
        "ver": 1, "jti": "AT.0mP4JKAZX1iACIT4vbEDF7LpvDVjxypPMf0D7uX39RE", "aud": "api://default", "cid": "0oa1",
        "uid": "00uid4BxXw6I6TV4m0g3", "scp": ["openid", "mcp"], "auth_time": 1, "sub": "alice@example.com",
    });
    let token = fake.signed(&header, user.clone());
    assert_eq!(trusting.principal(&token).await, "alice@example.com");
    let service =
        json!({ "cid": "0oa2", "sub": "0oa2", "uid": null, "auth_time": null, "scp": ["mcp"] });
    let service = fake.signed(&header, with(&user, service));
    assert_eq!(trusting.principal(&service).await, "0oa2");

    let other = with(&user, json!({ "aud": "api://other" }));
    trusting
        .refuses(&fake.signed(&header, other), TokenFault::Audience)
        .await;
    let header =
        json!({ "kid": "first", "alg": "RS256", "typ": "application/okta-internal-at+jwt" });
    trusting
        .refuses(&fake.signed(&header, user), TokenFault::Malformed)
        .await;
}

#[tokio::test]
async fn a_user_can_be_named_by_what_never_changes_and_a_service_by_its_client() {
    let path = "/oauth2/default";
    let fake = Fake::at(path, &format!("{path}/.well-known/openid-configuration")).await;
    let trusting = Trusting::new(Issuer {
        audience: vec!["api://default".to_owned()],
        principal_claims: vec!["uid".to_owned(), "cid".to_owned()],
        ..fake.settings(IssuerKind::Okta)
    })
    .await;
    let user = json!({ "aud": "api://default", "cid": "0oa1", "uid": "00u1", "scp": ["mcp"], "sub": "alice@example.com" });
    assert_eq!(trusting.principal(&fake.token(user.clone())).await, "00u1");
    let service = with(&user, json!({ "uid": null, "sub": "0oa1" }));
    assert_eq!(
        trusting.principal(&fake.token(service.clone())).await,
        "cid:0oa1"
    );
    let disguised = with(&user, json!({ "uid": "cid:0oa1" }));
    trusting
        .refuses(&fake.token(disguised), TokenFault::Claims)
        .await;
    let login = with(&service, json!({ "auth_time": 1 }));
    trusting
        .refuses(&fake.token(login), TokenFault::Claims)
        .await;
}
