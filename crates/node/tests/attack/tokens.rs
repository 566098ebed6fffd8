use serde_json::{Value, json};
use shoal_auth::fixture::{AuthorizationServer, SigningKey, now, unsigned};

use crate::harness::{Family, RESOURCE, Request, trusting};
use crate::process::Server;

const WRONG_ALGORITHM: &str = "401 its algorithm is not allowed";
const WRONG_SIGNATURE: &str = "401 its signature is wrong";
const UNKNOWN_KEY: &str = "401 its key is not known";
const UNREADABLE: &str = "401 it cannot be read";
const WRONG_AUDIENCE: &str = "401 it is not for this server";
const WRONG_ISSUER: &str = "401 its issuer is not trusted";
const WRONG_CLAIM: &str = "401 a claim is missing or cannot be used";
const BOUND: &str = "401 it is bound to its client";
const ELSEWHERE: &str = "401 bound to a certificate";
const NO_SCOPE: &str = "403 the access token lacks a scope";
const NO_TOKEN: &str = "401 a bearer token is required";

pub(crate) async fn family() -> Family {
    let mut family = Family::new("token confusion");
    let (key, rsa, other) = (
        SigningKey::es256("first"),
        SigningKey::rs256("rsa"),
        SigningKey::es256("first"),
    );
    let issuer = AuthorizationServer::start(&[&key, &rsa]).await;
    let server = Server::of(trusting(&issuer)).await;
    let sound = issuer.claims(RESOURCE);
    let text = sound.to_string();
    let ask = async |token: String| Request::echo().bearer(&token).send(&server.mcp).await;

    family.row(
        "none, as a control",
        "200 hello",
        ask(key.token(&sound)).await,
    );
    family.row(
        "none, with the other key",
        "200 hello",
        ask(rsa.token(&sound)).await,
    );
    for algorithm in ["none", "None", "HS256", "RS512", "PS256", "ES384", "EdDSA"] {
        let header = json!({ "alg": algorithm, "kid": "first" });
        let token = key.sign(&header, &sound);
        family.row(
            format!("alg {algorithm}"),
            WRONG_ALGORITHM,
            ask(token).await,
        );
    }
    let unsigned = format!("{}.", unsigned(r#"{"alg":"none"}"#, &text));
    family.row(
        "alg none without a signature",
        WRONG_ALGORITHM,
        ask(unsigned).await,
    );
    let confused = key.confused(r#"{"alg":"HS256","kid":"first"}"#, &text);
    family.row(
        "HS256 with the public key as its secret",
        WRONG_ALGORITHM,
        ask(confused).await,
    );
    let confused = key.confused(r#"{"alg":"ES256","kid":"first"}"#, &text);
    family.row(
        "the same, called ES256",
        WRONG_SIGNATURE,
        ask(confused).await,
    );
    let crossed = key.sign(&json!({ "alg": "RS256", "kid": "first" }), &sound);
    family.row(
        "a key of one kind, called another",
        UNKNOWN_KEY,
        ask(crossed).await,
    );
    family.row(
        "a key of the same name, not the issuer's",
        WRONG_SIGNATURE,
        ask(other.token(&sound)).await,
    );

    let evil = format!("{}/evil", issuer.issuer);
    for (name, value) in [
        ("jwk", other.jwk()),
        ("jku", json!(evil)),
        ("x5u", json!(evil)),
        ("x5c", json!(["MIIB"])),
    ] {
        let mut header = json!({ "alg": "ES256", "kid": "first" });
        header[name] = value;
        let got = ask(other.sign(&header, &sound)).await;
        family.row(
            format!("the header {name} brings a key"),
            WRONG_SIGNATURE,
            got,
        );
    }
    for (attack, header, expected) in [
        (
            "kid that is a path",
            json!({ "kid": "../../first" }),
            UNKNOWN_KEY,
        ),
        (
            "kid that breaks lines",
            json!({ "kid": "first\r\n" }),
            UNKNOWN_KEY,
        ),
        ("kid that is a number", json!({ "kid": 1 }), UNREADABLE),
        (
            "crit that nobody knows",
            json!({ "kid": "first", "crit": ["b64"], "b64": false }),
            UNREADABLE,
        ),
        (
            "crit that is empty",
            json!({ "kid": "first", "crit": [] }),
            UNREADABLE,
        ),
        (
            "crit that is null",
            json!({ "kid": "first", "crit": null }),
            UNREADABLE,
        ),
        (
            "typ of a DPoP proof",
            json!({ "kid": "first", "typ": "dpop+jwt" }),
            UNREADABLE,
        ),
        (
            "typ of a logout token",
            json!({ "kid": "first", "typ": "logout+jwt" }),
            UNREADABLE,
        ),
    ] {
        let mut header = header;
        header["alg"] = json!("ES256");
        family.row(attack, expected, ask(key.sign(&header, &sound)).await);
    }

    let claims = |name: &str, value: Value| {
        let mut claims = sound.clone();
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value,
        }
        claims
    };
    for (name, value, expected) in [
        (
            "aud",
            json!("https://other.example.com/mcp"),
            WRONG_AUDIENCE,
        ),
        ("aud", json!(format!("{RESOURCE}/")), WRONG_AUDIENCE),
        (
            "aud",
            json!(format!("{RESOURCE}.example.org")),
            WRONG_AUDIENCE,
        ),
        ("aud", json!([[RESOURCE]]), WRONG_AUDIENCE),
        ("aud", json!({ RESOURCE: true }), WRONG_AUDIENCE),
        ("aud", json!([]), WRONG_AUDIENCE),
        ("aud", Value::Null, WRONG_AUDIENCE),
        ("iss", json!("https://evil.example.com"), WRONG_ISSUER),
        ("iss", json!(format!("{}//", issuer.issuer)), WRONG_ISSUER),
        ("iss", json!(format!("{}/?", issuer.issuer)), WRONG_ISSUER),
        ("iss", json!([issuer.issuer]), WRONG_ISSUER),
        ("iss", Value::Null, WRONG_ISSUER),
        ("exp", json!(now() - 3600), "401 it has expired"),
        ("exp", json!(-1), WRONG_CLAIM),
        ("exp", json!("9e99"), WRONG_CLAIM),
        (
            "exp",
            json!((now() - 3600).to_string()),
            "401 it has expired",
        ),
        ("exp", Value::Null, WRONG_CLAIM),
        ("nbf", json!(now() + 3600), "401 it is not valid yet"),
        ("nbf", json!("soon"), WRONG_CLAIM),
        ("sub", json!(""), WRONG_CLAIM),
        ("sub", json!(0.5), WRONG_CLAIM),
        ("sub", json!("alice\r\nroot"), WRONG_CLAIM),
        ("sub", json!("\u{1b}[2J"), WRONG_CLAIM),
        ("sub", json!("a".repeat(5000)), WRONG_CLAIM),
        ("sub", json!("shoal-console"), WRONG_CLAIM),
        ("sub", json!("anonymous"), WRONG_CLAIM),
        ("sub", Value::Null, WRONG_CLAIM),
        ("scope", json!("MCP mcp2 mc"), NO_SCOPE),
        ("scope", json!("x\tmcp"), NO_SCOPE),
        ("scope", json!({ "mcp": true }), NO_SCOPE),
        ("scope", Value::Null, NO_SCOPE),
        ("cnf", json!({ "jkt": key.thumbprint() }), BOUND),
        ("cnf", json!({ "x5t#S256": "abc" }), ELSEWHERE),
        ("cnf", json!({ "kid": "abc" }), BOUND),
        ("cnf", json!({}), BOUND),
        ("cnf", json!("none"), BOUND),
    ] {
        let shown: String = value.to_string().chars().take(40).collect();
        let got = ask(key.token(&claims(name, value))).await;
        family.row(format!("{name} {shown}"), expected, got);
    }

    let header = r#"{"alg":"ES256","kid":"first"}"#;
    let inner = text.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
    for (attack, header, claims) in [
        (
            "aud twice, the last is right",
            header,
            format!(r#"{{"aud":"x",{inner}}}"#),
        ),
        (
            "exp twice, the last is right",
            header,
            format!(r#"{{"exp":1,{inner}}}"#),
        ),
        ("sub twice", header, format!(r#"{{{inner},"sub":"root"}}"#)),
        (
            "sub twice, once escaped",
            header,
            format!(r#"{{{inner},"s\u0075b":"root"}}"#),
        ),
        (
            "alg twice",
            r#"{"alg":"none","alg":"ES256","kid":"first"}"#,
            text.clone(),
        ),
        ("claims that go on", header, format!("{text}{{}}")),
        ("claims that are a list", header, "[]".to_owned()),
        (
            "claims that nest",
            header,
            format!(
                r#"{{{inner},"x":{}{}}}"#,
                "[".repeat(3000),
                "]".repeat(3000)
            ),
        ),
    ] {
        family.row(
            attack,
            UNREADABLE,
            ask(key.sign_text(header, &claims)).await,
        );
    }

    let good = key.token(&sound);
    for (attack, token, expected) in [
        (
            "padding after the signature",
            format!("{good}="),
            WRONG_SIGNATURE,
        ),
        ("a fourth part", format!("{good}.x"), UNREADABLE),
        (
            "five parts, as encrypted ones have",
            "a.b.c.d.e".to_owned(),
            UNREADABLE,
        ),
        (
            "a second token after a comma",
            format!("{good},{good}"),
            UNREADABLE,
        ),
        (
            "a token that is too long",
            "a".repeat(16385),
            "401 it is too long",
        ),
    ] {
        family.row(attack, expected, ask(token).await);
    }
    let bearer = format!("Bearer {good}");
    let plain = Request::echo();
    let mut in_query = plain.clone();
    in_query.line = format!("POST /mcp?access_token={good} HTTP/1.1");
    for (attack, request, expected) in [
        ("the token in the query", in_query, NO_TOKEN),
        (
            "the token in a cookie",
            plain
                .clone()
                .header("Cookie", &format!("access_token={good}")),
            NO_TOKEN,
        ),
        (
            "the token in a proxy's header",
            plain.clone().header("X-Forwarded-Authorization", &bearer),
            NO_TOKEN,
        ),
        (
            "a name in a proxy's header",
            plain.clone().header("X-Forwarded-User", "root"),
            NO_TOKEN,
        ),
        (
            "the token without a scheme",
            plain.clone().header("Authorization", &good),
            NO_TOKEN,
        ),
        (
            "Basic",
            plain
                .clone()
                .header("Authorization", &format!("Basic {good}")),
            NO_TOKEN,
        ),
        (
            "DPoP without a proof",
            plain
                .clone()
                .header("Authorization", &format!("DPoP {good}")),
            "401",
        ),
        (
            "two tokens, one good",
            plain.clone().bearer("x").and("authorization", &bearer),
            "400 is there twice",
        ),
        (
            "two tokens of a WebSocket",
            Request::of("GET /mcp", "")
                .without("Content-Length")
                .bearer(&good)
                .header("Connection", "Upgrade")
                .header("Upgrade", "websocket")
                .header("Sec-WebSocket-Protocol", "mcp, mcp.auth.x"),
            "400 give the token once",
        ),
        (
            "the same token twice",
            plain.clone().bearer(&good).and("Authorization", &bearer),
            "400 is there twice",
        ),
    ] {
        family.row(attack, expected, request.send(&server.mcp).await);
    }
    family
}
