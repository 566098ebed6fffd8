//! Authorization servers that are down, lie, or send too much.

use serde_json::json;
use shoal_auth::fixture::{AuthorizationServer, SigningKey};

use crate::harness::{Family, RESOURCE, Request, trusting};
use crate::process::Server;

const AWAY: &str = "503 callers cannot be authenticated now";

pub(crate) async fn family() -> Family {
    let mut family = Family::new("trouble with keys");
    let key = SigningKey::es256("first");
    let many: Vec<_> = (0..257).map(|_| key.jwk()).collect();
    let texts = [
        (
            "keys of 1.1 MiB",
            json!({ "keys": [key.jwk()], "more": "a".repeat(1100 << 10) }).to_string(),
            AWAY,
        ),
        ("257 keys", json!({ "keys": many }).to_string(), AWAY),
        ("keys that are no JSON", "<html>".to_owned(), AWAY),
        ("no keys", json!({ "keys": [] }).to_string(), AWAY),
        (
            "a secret in place of a key",
            json!({ "keys": [{ "kty": "oct", "kid": "first", "alg": "ES256", "k": "c2VjcmV0" }] })
                .to_string(),
            AWAY,
        ),
    ];
    for (attack, text, expected) in texts {
        let issuer = AuthorizationServer::start(&[]).await;
        issuer.publish_text(text);
        let server = Server::announced(trusting(&issuer)).await;
        let token = key.token(&issuer.claims(RESOURCE));
        let got = Request::echo().bearer(&token).send(&server.mcp).await;
        family.row(attack, expected, got);
    }

    let issuer = AuthorizationServer::start(&[&key]).await;
    issuer.set_down(true);
    let server = Server::announced(trusting(&issuer)).await;
    let token = key.token(&issuer.claims(RESOURCE));
    family.row(
        "away at the start",
        AWAY,
        Request::echo().bearer(&token).send(&server.mcp).await,
    );
    family.is(
        "ready without keys",
        false,
        server.readiness().await.0 == 200,
    );

    let issuer = AuthorizationServer::start(&[&key]).await;
    issuer.claim("https://evil.example.com");
    let server = Server::announced(trusting(&issuer)).await;
    let token = key.token(&issuer.claims(RESOURCE));
    family.row(
        "metadata of another issuer",
        AWAY,
        Request::echo().bearer(&token).send(&server.mcp).await,
    );

    let issuer = AuthorizationServer::start(&[&key]).await;
    let mut command = trusting(&issuer);
    command.env("SHOAL_AUTH__KEYS_INTERVAL", "1h");
    let server = Server::of(command).await;
    let fetches = issuer.fetches();
    let mut refused = true;
    for kid in 0..40 {
        let header = json!({ "alg": "ES256", "kid": format!("kid-{kid}") });
        let token = key.sign(&header, &issuer.claims(RESOURCE));
        refused &= Request::echo()
            .bearer(&token)
            .send(&server.mcp)
            .await
            .starts_with("401");
    }
    family.is("40 unknown keys are refused", true, refused);
    family.is(
        "40 unknown keys cause more than one fetch",
        false,
        issuer.fetches() > fetches + 1,
    );
    let token = key.token(&issuer.claims(RESOURCE));
    issuer.set_down(true);
    family.row(
        "away later, known keys",
        "200 hello",
        Request::echo().bearer(&token).send(&server.mcp).await,
    );

    let issuer = AuthorizationServer::start(&[&key]).await;
    let mut command = trusting(&issuer);
    command.env("SHOAL_AUTH__KEYS_INTERVAL", "1ms");
    let server = Server::of(command).await;
    let second = SigningKey::es256("second");
    issuer.publish(&[&second]);
    let token = second.token(&issuer.claims(RESOURCE));
    family.row(
        "a new key, as a control",
        "200 hello",
        Request::echo().bearer(&token).send(&server.mcp).await,
    );
    let token = key.token(&issuer.claims(RESOURCE));
    family.row(
        "the key that was withdrawn",
        "401 its key is not known",
        Request::echo().bearer(&token).send(&server.mcp).await,
    );
    family
}
