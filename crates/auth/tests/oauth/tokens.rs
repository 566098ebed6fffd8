use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use shoal_auth::OAuth;
use shoal_auth::fixture::{AuthorizationServer, SigningKey, now};
use shoal_outbound::Outbound;
use shoal_ports::{AuthError, Authenticator as _, Credentials, TokenFault};

use crate::setting::{RESOURCE, Setting, trusting, until};

fn fault(fault: TokenFault) -> AuthError {
    AuthError::Token(fault)
}

#[tokio::test]
async fn a_sound_token_names_its_principal() {
    let setting = Setting::new().await;
    let token = setting.key.token(&setting.claims());
    let known = setting.show(&token).await.unwrap();
    assert_eq!(known.principal.as_str(), "alice");
    let grant = known.grant.unwrap();
    assert!(grant.has("mcp") && grant.until.is_some());
    assert!(!format!("{grant:?}").contains("alice"));
    let nothing = setting.oauth.authenticate(Credentials::none()).await;
    assert_eq!(nothing, Err(AuthError::Missing));
}

#[tokio::test]
async fn every_kind_of_key_verifies() {
    let setting = Setting::new().await;
    let keys = [
        SigningKey::rs256("rsa"),
        SigningKey::ed25519("edwards"),
        SigningKey::es256("curve"),
    ];
    let published: Vec<&SigningKey> = keys.iter().collect();
    let server = AuthorizationServer::start(&published).await;
    let oauth = OAuth::start(&trusting(&server), "/mcp", &Outbound::default()).unwrap();
    until(|| oauth.waits_for().is_none()).await;
    for key in &keys {
        let token = key.token(&server.claims(RESOURCE));
        oauth
            .authenticate(Credentials::bearer(&token))
            .await
            .unwrap();
        let claims = setting.claims();
        let other = SigningKey::es256("first").token(&claims);
        assert_eq!(
            setting.show(&other).await,
            Err(fault(TokenFault::Signature))
        );
    }
}

#[tokio::test]
async fn an_algorithm_is_pinned_and_never_symmetric() {
    let setting = Setting::with(|auth| {
        auth.issuers[0]
            .algorithms
            .retain(|one| format!("{one:?}") != "EdDSA");
    })
    .await;
    let claims = setting.claims();
    let part = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    for alg in [
        "none", "None", "HS256", "HS384", "HS512", "ES512", "dir", "",
    ] {
        let header = json!({ "alg": alg, "kid": "first" });
        let unsigned = format!("{}.{}.", part(&header), part(&claims));
        assert_eq!(
            setting.show(&unsigned).await,
            Err(fault(TokenFault::Algorithm)),
            "{alg}"
        );
    }
    let header = json!({ "alg": "HS256", "kid": "first" });
    let signed = jsonwebtoken::crypto::sign(
        format!("{}.{}", part(&header), part(&claims)).as_bytes(),
        &jsonwebtoken::EncodingKey::from_secret(setting.key.jwk().to_string().as_bytes()),
        jsonwebtoken::Algorithm::HS256,
    );
    let confused = format!("{}.{}.{}", part(&header), part(&claims), signed.unwrap());
    assert_eq!(
        setting.show(&confused).await,
        Err(fault(TokenFault::Algorithm))
    );
    let edwards = SigningKey::ed25519("first").token(&claims);
    assert_eq!(
        setting.show(&edwards).await,
        Err(fault(TokenFault::Algorithm))
    );
    let header = json!({ "alg": "RS256", "kid": "first" });
    let confused = setting.key.sign(&header, &claims);
    assert_eq!(setting.show(&confused).await, Err(fault(TokenFault::Key)));
}

#[tokio::test]
async fn whatever_is_wrong_is_told_apart() {
    let setting = Setting::new().await;
    let with = |claim: &str, value: Value| {
        let mut claims = setting.claims();
        claims[claim] = value;
        setting.key.token(&claims)
    };
    for (token, due) in [
        (
            with("aud", json!("https://other.example.com")),
            TokenFault::Audience,
        ),
        (
            with("iss", json!("https://other.example.com")),
            TokenFault::Issuer,
        ),
        (with("exp", json!(now() - 120)), TokenFault::Expired),
        (with("nbf", json!(now() + 120)), TokenFault::NotYet),
        (with("sub", json!("")), TokenFault::Claims),
        (
            with("cnf", json!({ "x5t#S256": "a" })),
            TokenFault::Certificate,
        ),
        (with("cnf", json!({ "kid": "a" })), TokenFault::Binding),
        (with("cnf", json!({ "jkt": "a" })), TokenFault::Binding),
        (
            with("more", json!("x".repeat(17 << 10))),
            TokenFault::TooLong,
        ),
        ("secret".to_owned(), TokenFault::Malformed),
        ("a.b.c".to_owned(), TokenFault::Malformed),
        ("a.b.c.d.e".to_owned(), TokenFault::Malformed),
    ] {
        assert_eq!(setting.show(&token).await, Err(fault(due)), "{token:.300}");
    }
    for header in [
        json!({ "alg": "ES256", "kid": "first", "typ": "dpop+jwt" }),
        json!({ "alg": "ES256", "kid": "first", "typ": "logout+jwt" }),
        json!({ "alg": "ES256", "kid": "first", "crit": ["b64"], "b64": true }),
    ] {
        let token = setting.key.sign(&header, &setting.claims());
        assert_eq!(
            setting.show(&token).await,
            Err(fault(TokenFault::Malformed)),
            "{header}"
        );
    }
}

#[tokio::test]
async fn names_of_resources_and_issuers_are_compared_as_urls() {
    for (resource, aud, taken) in [
        ("https://mcp.example.com", "https://mcp.example.com/", true),
        ("https://mcp.example.com/", "https://mcp.example.com", true),
        (
            "https://mcp.example.com/mcp",
            "https://MCP.example.com:443/mcp",
            true,
        ),
        (
            "https://MCP.example.com/mcp",
            "https://mcp.example.com/mcp",
            true,
        ),
        (
            "https://mcp.example.com/mcp",
            "https://mcp.example.com/mcp/",
            false,
        ),
        (
            "https://mcp.example.com/mcp",
            "https://mcp.example.com/",
            false,
        ),
        ("https://mcp.example.com", "http://mcp.example.com", false),
        (
            "https://mcp.example.com",
            "https://mcp.example.com:8443",
            false,
        ),
    ] {
        let setting = Setting::with(|auth| resource.clone_into(&mut auth.resource)).await;
        for aud in [json!(aud), json!(["other", aud])] {
            let mut claims = setting.claims();
            claims["aud"] = aud.clone();
            let shown = setting.show(&setting.key.token(&claims)).await.map(drop);
            let due = if taken {
                Ok(())
            } else {
                Err(fault(TokenFault::Audience))
            };
            assert_eq!(shown, due, "{resource} {aud}");
        }
    }
    let setting = Setting::with(|auth| auth.issuers[0].issuer.push('/')).await;
    for iss in [
        setting.server.issuer.clone(),
        format!("{}/", setting.server.issuer),
    ] {
        let mut claims = setting.claims();
        claims["iss"] = json!(iss);
        setting.show(&setting.key.token(&claims)).await.unwrap();
    }
    let mut claims = setting.claims();
    claims["iss"] = json!(format!("{}//", setting.server.issuer));
    let refused = setting.show(&setting.key.token(&claims)).await;
    assert_eq!(refused, Err(fault(TokenFault::Issuer)));
}

#[tokio::test]
async fn the_subjects_of_two_issuers_are_two_principals() {
    let keys = [SigningKey::es256("same"), SigningKey::es256("same")];
    let first = AuthorizationServer::start(&[&keys[0]]).await;
    let second = AuthorizationServer::start(&[&keys[1]]).await;
    let mut auth = trusting(&first);
    auth.issuers.extend(trusting(&second).issuers);
    let oauth = OAuth::start(&auth, "/mcp", &Outbound::default()).unwrap();
    let known = || oauth.report().iter().all(|issuer| issuer.keys == Some(1));
    until(known).await;
    let mut names = Vec::new();
    for (server, key) in [(&first, &keys[0]), (&second, &keys[1])] {
        let token = key.token(&server.claims(RESOURCE));
        let shown = oauth.authenticate(Credentials::bearer(&token)).await;
        names.push(shown.unwrap().principal.to_string());
        assert_eq!(names.last(), Some(&format!("{}#alice", server.issuer)));
    }
    let forged = keys[1].token(&first.claims(RESOURCE));
    let refused = oauth.authenticate(Credentials::bearer(&forged)).await;
    assert_eq!(refused, Err(fault(TokenFault::Signature)));
}

#[tokio::test]
async fn claims_count_in_the_forms_that_issuers_write_them_in() {
    let setting = Setting::with(|auth| auth.required_scopes = vec!["mcp".to_owned()]).await;
    for (changes, due) in [
        (
            json!({ "exp": (now() + 600).to_string(), "nbf": now().to_string() }),
            "alice",
        ),
        (
            json!({ "exp": format!("{}.5", now() + 600), "nbf": null }),
            "alice",
        ),
        (json!({ "sub": 4711 }), "4711"),
        (json!({ "scope": "", "scp": ["mcp"] }), "alice"),
        (json!({ "scope": null, "scp": "other mcp" }), "alice"),
        (json!({ "scope": ["other"], "scp": "mcp" }), "alice"),
        (json!({ "scope": "other  mcp " }), "alice"),
        (json!({ "cnf": null }), "alice"),
    ] {
        let mut claims = setting.claims();
        for (claim, value) in changes.as_object().unwrap() {
            claims[claim] = value.clone();
        }
        let shown = setting.show(&setting.key.token(&claims)).await;
        assert_eq!(shown.unwrap().principal.as_str(), due, "{changes}");
    }
    for (changes, due) in [
        (
            json!({ "exp": (now() - 600).to_string() }),
            TokenFault::Expired,
        ),
        (
            json!({ "nbf": (now() + 600).to_string() }),
            TokenFault::NotYet,
        ),
        (json!({ "exp": "" }), TokenFault::Claims),
        (json!({ "exp": "1e99" }), TokenFault::Claims),
        (json!({ "exp": "-1" }), TokenFault::Claims),
        (json!({ "exp": "1.2.3" }), TokenFault::Claims),
        (json!({ "exp": null }), TokenFault::Claims),
        (json!({ "sub": null }), TokenFault::Claims),
        (json!({ "sub": 0.5 }), TokenFault::Claims),
        (json!({ "sub": true }), TokenFault::Claims),
        (json!({ "sub": ["alice"] }), TokenFault::Claims),
        (json!({ "iss": null }), TokenFault::Issuer),
        (json!({ "iss": 7 }), TokenFault::Issuer),
        (json!({ "aud": null }), TokenFault::Audience),
    ] {
        let mut claims = setting.claims();
        for (claim, value) in changes.as_object().unwrap() {
            claims[claim] = value.clone();
        }
        let refused = setting.show(&setting.key.token(&claims)).await;
        assert_eq!(refused, Err(fault(due)), "{changes}");
    }
}

#[tokio::test]
async fn required_scopes_are_asked_for() {
    let setting = Setting::with(|auth| auth.required_scopes = vec!["mcp".to_owned()]).await;
    let mut claims = setting.claims();
    setting.show(&setting.key.token(&claims)).await.unwrap();
    claims["scope"] = json!("other");
    let refused = setting.show(&setting.key.token(&claims)).await;
    assert_eq!(refused, Err(AuthError::Scope(["mcp".to_owned()].into())));
}

#[tokio::test]
async fn a_token_that_was_verified_ends_all_the_same() {
    let setting = Setting::with(|auth| auth.clock_skew = shoal_ports::Period::ZERO).await;
    let mut claims = setting.claims();
    claims["exp"] = json!(now() + 2);
    let token = setting.key.token(&claims);
    setting.show(&token).await.unwrap();
    let over = async {
        loop {
            match setting.show(&token).await {
                Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
                Err(why) => return why,
            }
        }
    };
    let why = tokio::time::timeout(crate::setting::SOON, over)
        .await
        .unwrap();
    assert_eq!(why, fault(TokenFault::Expired));
}
