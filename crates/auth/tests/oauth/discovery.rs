use serde_json::json;
use shoal_auth::OAuth;
use shoal_auth::fixture::{AuthorizationServer, SigningKey, Told};
use shoal_outbound::Outbound;
use shoal_ports::{Authenticator as _, Credentials};

use crate::setting::{RESOURCE, trusting, until};

const FIRST: &str = "/.well-known/oauth-authorization-server/realms/a";
const SECOND: &str = "/.well-known/openid-configuration/realms/a";
const THIRD: &str = "/realms/a/.well-known/openid-configuration";

struct Realm {
    server: AuthorizationServer,
    key: SigningKey,
    issuer: String,
}

impl Realm {
    async fn new() -> Self {
        let key = SigningKey::es256("first");
        let server = AuthorizationServer::start(&[&key]).await;
        let issuer = format!("{}/realms/a", server.issuer);
        server.describe(THIRD, &issuer);
        Self {
            server,
            key,
            issuer,
        }
    }

    fn trusted(&self) -> OAuth {
        let mut auth = trusting(&self.server);
        auth.issuers[0].issuer = self.issuer.clone();
        OAuth::start(&auth, "/mcp", &Outbound::default()).unwrap()
    }

    async fn expect_its_token_taken(&self, oauth: &OAuth) {
        let mut claims = self.server.claims(RESOURCE);
        claims["iss"] = json!(self.issuer);
        let token = self.key.token(&claims);
        let shown = oauth.authenticate(Credentials::bearer(&token)).await;
        assert_eq!(shown.unwrap().principal.as_str(), "alice");
    }
}

#[tokio::test]
async fn discovery_goes_on_after_any_answer_that_is_not_the_issuers_metadata() {
    let other = json!({ "issuer": "https://other.example.com", "jwks_uri": "https://other.example.com/jwks" });
    let realm = Realm::new().await;
    let without_keys = json!({ "issuer": realm.issuer });
    let answers = [
        Told::new(400, r#"{"error":"invalid_request"}"#),
        Told::new(401, ""),
        Told::new(403, "forbidden"),
        Told::new(405, ""),
        Told::new(410, ""),
        Told::new(500, "oops"),
        Told::new(503, ""),
        Told::moved(301, "https://www.example.com/login"),
        Told::moved(302, "/login"),
        Told::new(200, "<!doctype html><title>Sign in</title>"),
        Told::new(200, "{}"),
        Told::new(200, "[]"),
        Told::new(200, ""),
        Told::new(200, other.to_string()),
        Told::new(200, without_keys.to_string()),
        Told::new(200, " ".repeat(1100 << 10)),
    ];
    for told in answers {
        realm.server.tell(FIRST, told.clone());
        realm.server.tell(SECOND, told.clone());
        let oauth = realm.trusted();
        until(|| oauth.waits_for().is_none() || oauth.trouble().is_some()).await;
        let trouble = oauth.report().remove(0).trouble;
        assert_eq!(trouble, None, "{told:?}");
        realm.expect_its_token_taken(&oauth).await;
    }
}

#[tokio::test]
async fn an_error_names_what_each_place_said() {
    let realm = Realm::new().await;
    realm.server.tell(FIRST, Told::new(403, "forbidden"));
    realm.server.tell(SECOND, Told::new(200, "<html>"));
    let other = r#"{"issuer":"https://other.example.com"}"#;
    realm.server.tell(THIRD, Told::new(200, other));
    let oauth = realm.trusted();
    until(|| oauth.trouble().is_some()).await;
    let trouble = oauth.report().remove(0).trouble.unwrap();
    for (place, said) in [
        (FIRST, "403 Forbidden"),
        (SECOND, "HTML"),
        (
            THIRD,
            "metadata of another issuer, \"https://other.example.com\"",
        ),
    ] {
        let (_, after) = trouble.split_once(place).expect(place);
        let said_here = after.split(';').next().unwrap();
        assert!(said_here.contains(said), "{place}: {trouble}");
    }
    assert_eq!(realm.server.asked(), [FIRST, SECOND, THIRD]);
    assert_eq!(realm.server.fetches(), 0);
}

#[tokio::test]
async fn documents_may_begin_with_a_mark_and_be_one_redirect_away_on_the_same_origin() {
    let realm = Realm::new().await;
    let keys = json!({ "keys": [realm.key.jwk()] });
    let marked = Told::new(200, format!("\u{feff}{keys}"));
    realm.server.tell("/keys", marked.clone());
    for status in [301, 302, 303, 307, 308] {
        realm.server.tell("/jwks", Told::moved(status, "/keys"));
        let oauth = realm.trusted();
        until(|| oauth.waits_for().is_none() || oauth.trouble().is_some()).await;
        assert_eq!(oauth.report()[0].trouble, None, "{status}");
        realm.expect_its_token_taken(&oauth).await;
    }
    realm.server.tell("/jwks", Told::moved(302, "/again"));
    realm.server.tell("/again", Told::moved(302, "/keys"));
    let oauth = realm.trusted();
    until(|| oauth.trouble().is_some()).await;
    let elsewhere = AuthorizationServer::start(&[&realm.key]).await;
    let there = format!("{}/jwks", elsewhere.issuer);
    realm.server.tell("/jwks", Told::moved(302, &there));
    let oauth = realm.trusted();
    until(|| oauth.trouble().is_some()).await;
    let trouble = oauth.report().remove(0).trouble.unwrap();
    assert!(
        trouble.contains("302") && trouble.contains("redirect"),
        "{trouble}"
    );
    assert!(elsewhere.asked().is_empty());
}
