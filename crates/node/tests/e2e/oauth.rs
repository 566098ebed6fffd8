use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use shoal_auth::fixture::{AuthorizationServer, SigningKey, now};
use tokio::process::Command;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::client::{Session, call, initialize, modern_call, post, post_modern, response, text};
use crate::process::{SOON, Server, shoal};
use crate::websocket::{Client as WebSocketClient, stream_to};

const RESOURCE: &str = "https://mcp.example.com/mcp";
const METADATA: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";

fn trusting(issuer: &AuthorizationServer, more: &[(&str, &str)]) -> Command {
    let mut command = shoal(&[
        "serve",
        "--demo",
        "--admin",
        "127.0.0.1:0",
        "--listen",
        "127.0.0.1:0",
    ]);
    let issuers = format!(
        "[{{ issuer = '{}', algorithms = ['ES256'] }}]",
        issuer.issuer
    );
    command
        .env("SHOAL_AUTH__MODE", "oauth")
        .env("SHOAL_AUTH__RESOURCE", RESOURCE)
        .env("SHOAL_AUTH__ISSUERS", issuers)
        .env("SHOAL_AUTH__REQUIRED_SCOPES", "['mcp']")
        .env("SHOAL_AUTH__TOOL_SCOPES", "{ add = ['math'] }")
        .env("SHOAL_LOGGING__LEVEL", "debug")
        .envs(more.iter().copied());
    command
}

async fn start(more: &[(&str, &str)]) -> (AuthorizationServer, SigningKey, Server) {
    let key = SigningKey::es256("first");
    let issuer = AuthorizationServer::start(&[&key]).await;
    let server = Server::of(trusting(&issuer, more)).await;
    (issuer, key, server)
}

fn challenge(answer: &Response) -> String {
    let values = answer.headers().get_all("www-authenticate").iter();
    let values = values.map(|value| value.to_str().unwrap());
    values.collect::<Vec<_>>().join(", ")
}

fn echo() -> Value {
    modern_call(1, "echo", json!({ "text": "hello" }))
}

#[tokio::test]
async fn a_client_finds_its_way_from_the_first_refusal() {
    let (issuer, key, server) = start(&[]).await;
    for request in [
        post(&server.mcp, &initialize(0, "2025-11-25")),
        post_modern(&server.mcp, &echo()),
        // The metadata's URL does not depend on the request's `Host` header.
        post_modern(&server.mcp, &echo()).header("host", "localhost:1"),
    ] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 401);
        let due = format!("Bearer resource_metadata=\"{METADATA}\", scope=\"mcp\"");
        assert_eq!(challenge(&answer), due);
    }
    let origin = server.mcp.strip_suffix("/mcp").unwrap();
    for path in ["", "/mcp"] {
        let url = format!("{origin}/.well-known/oauth-protected-resource{path}");
        let page = Client::new()
            .get(&url)
            .header("origin", "https://page.example.com");
        let answer = page.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["access-control-allow-origin"], "*");
        let document: Value = answer.json().await.unwrap();
        assert_eq!(document["resource"], RESOURCE);
        assert_eq!(document["authorization_servers"], json!([issuer.issuer]));
        assert_eq!(document["scopes_supported"], json!(["mcp"]));
        assert_eq!(document["bearer_methods_supported"], json!(["header"]));
        let asked = Client::new().request(Method::OPTIONS, &url).send().await;
        assert_eq!(
            asked.unwrap().headers()["access-control-allow-headers"],
            "*"
        );
    }
    let token = key.token(&issuer.claims(RESOURCE));
    let answer = post_modern(&server.mcp, &echo()).bearer_auth(&token);
    let answer = response(answer.send().await.unwrap()).await;
    assert_eq!(text(&answer), "hello");
    let session = Session::open_as(&server.mcp, Some(&token)).await;
    let answer = session
        .ask(&call(1, "echo", json!({ "text": "legacy" })))
        .await;
    assert_eq!(text(&answer), "legacy");
    let log = server.log();
    assert!(!log.contains(&token) && !log.contains(token.rsplit_once('.').unwrap().1));
}

/// Cognito's access tokens have no audience, so Shoal checks the client id instead.
#[tokio::test]
async fn an_issuer_of_a_kind_is_configured_by_its_name_and_the_log_tells_each_claim_that_is_wrong()
{
    let key = SigningKey::rs256("first");
    let issuer = AuthorizationServer::start(&[&key]).await;
    let pool = format!("{}/us-west-2_EXAMPLE", issuer.issuer);
    issuer.describe("/us-west-2_EXAMPLE/.well-known/openid-configuration", &pool);
    let issuers = format!("[{{ issuer_kind = 'cognito', issuer = '{pool}', clients = ['ours'] }}]");
    let mut command = trusting(&issuer, &[("SHOAL_AUTH__ISSUERS", &issuers)]);
    command.env("SHOAL_TELEMETRY__LOGS__REPEATS", "0");
    let server = Server::of(command).await;
    let header = json!({ "alg": "RS256", "kid": "first" });
    let claims = json!({
        "iss": pool, "sub": "aaaaaaaa", "client_id": "ours", "token_use": "access", "scope": "mcp", "exp": (now() + 600).to_string(),
    });
    let show = async |claims: &Value| {
        let token = key.sign(&header, claims);
        post_modern(&server.mcp, &echo())
            .bearer_auth(token)
            .send()
            .await
            .unwrap()
    };
    assert_eq!(text(&response(show(&claims).await).await), "hello");
    for (claim, value, told) in [
        (
            "client_id",
            json!("other"),
            "refusal=\"audience\" claim=\"client_id\" came=\"other\" expected=\"ours\"",
        ),
        (
            "aud",
            json!("https://other.example.com"),
            "claim=\"aud\" came=\"https://other.example.com\" expected=\"https://mcp.example.com/mcp\"",
        ),
        (
            "token_use",
            json!("id"),
            "refusal=\"claims\" claim=\"token_use\" came=\"id\" expected=\"access\"",
        ),
        (
            "sub",
            json!({}),
            "refusal=\"claims\" claim=\"sub\" came=\"{}\" expected=\"a text or a whole number",
        ),
        (
            "iss",
            json!("https://cognito.example.com"),
            "refusal=\"issuer\" claim=\"iss\" came=\"https://cognito.example.com\"",
        ),
    ] {
        let mut wrong = claims.clone();
        wrong[claim] = value;
        assert_eq!(show(&wrong).await.status(), 401, "{wrong}");
        server.said(told).await;
    }
    let encrypted = post_modern(&server.mcp, &echo()).bearer_auth("e30..iv.text.tag");
    assert_eq!(encrypted.send().await.unwrap().status(), 401);
    server
        .said("refusal=\"malformed\" came=\"a JWT that is encrypted (JWE)\"")
        .await;
}

#[tokio::test]
async fn a_token_for_somebody_else_is_refused_and_a_weak_one_can_be_made_stronger() {
    let (issuer, key, server) = start(&[]).await;
    let mut claims = issuer.claims("https://other.example.com/mcp");
    let refused = post_modern(&server.mcp, &echo()).bearer_auth(key.token(&claims));
    let refused = refused.send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert!(challenge(&refused).contains("error=\"invalid_token\""));
    let claim = "claim=\"aud\" came=\"https://other.example.com/mcp\"";
    let told = format!("refusal=\"audience\" {claim} expected=\"{RESOURCE}\"");
    server.said(&told).await;

    claims["aud"] = json!(RESOURCE);
    claims["scope"] = json!("other");
    let refused = post_modern(&server.mcp, &echo()).bearer_auth(key.token(&claims));
    let refused = refused.send().await.unwrap();
    assert_eq!(refused.status(), 403);
    let told = challenge(&refused);
    assert!(
        told.contains("scope=\"mcp\", error=\"insufficient_scope\""),
        "{told}"
    );
    assert!(told.contains(METADATA), "{told}");

    claims["scope"] = json!("mcp");
    let weak = key.token(&claims);
    claims["scope"] = json!("mcp math");
    let strong = key.token(&claims);
    let session = Session::open_as(&server.mcp, Some(&weak)).await;
    let add = json!({ "a": 1, "b": 2 });
    let (legacy, modern) = (
        call(1, "add", add.clone()),
        modern_call(1, "add", add.clone()),
    );
    let requests = |token: &str| {
        let legacy = post(&server.mcp, &legacy).header("mcp-session-id", &session.id);
        let legacy = legacy.header("mcp-protocol-version", "2025-11-25");
        [
            legacy.bearer_auth(token),
            post_modern(&server.mcp, &modern).bearer_auth(token),
        ]
    };
    for request in requests(&weak) {
        let refused = request.send().await.unwrap();
        assert_eq!(refused.status(), 403);
        let told = challenge(&refused);
        assert!(
            told.contains("scope=\"math mcp\", error=\"insufficient_scope\""),
            "{told}"
        );
        let body: Value = refused.json().await.unwrap();
        assert_eq!(body["id"], 1, "{body}");
    }
    for request in requests(&strong) {
        let answer = response(request.send().await.unwrap()).await;
        assert!(
            answer["result"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains('3'),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_session_is_its_principals_and_its_stream_ends_with_the_token() {
    let (issuer, key, server) = start(&[("SHOAL_AUTH__CLOCK_SKEW", "0s")]).await;
    let mut claims = issuer.claims(RESOURCE);
    claims["exp"] = json!(now() + 5);
    let brief = key.token(&claims);
    let session = Session::open_as(&server.mcp, Some(&brief)).await;
    claims["exp"] = json!(now() + 600);
    let fresh = key.token(&claims);
    claims["sub"] = json!("bob");
    let bobs = key.token(&claims);

    let mut stream = session.listen().await;
    timeout(SOON, async { while stream.next().await.is_some() {} })
        .await
        .unwrap();
    let ping = call(1, "echo", json!({ "text": "mine" }));
    let expired = session.post(&ping).send().await.unwrap();
    assert_eq!(expired.status(), 401);
    assert!(challenge(&expired).contains("it has expired"));

    let with = |token: &str| {
        let request = post(&server.mcp, &ping).header("mcp-session-id", &session.id);
        let request = request.header("mcp-protocol-version", "2025-11-25");
        request.bearer_auth(token).send()
    };
    assert_eq!(text(&response(with(&fresh).await.unwrap()).await), "mine");
    assert_eq!(with(&bobs).await.unwrap().status(), 404);
}

#[tokio::test]
async fn a_websocket_is_asked_for_scopes_and_ends_with_its_token() {
    let on = [
        ("SHOAL_AUTH__CLOCK_SKEW", "0s"),
        ("SHOAL_SERVER__WEBSOCKET", "true"),
    ];
    let (issuer, key, server) = start(&on).await;
    let mut claims = issuer.claims(RESOURCE);
    claims["exp"] = json!(now() + 5);
    claims["scope"] = json!("mcp");
    let offered = format!("mcp.resume, mcp.auth.{}", key.token(&claims));
    let mut client = WebSocketClient::open_on(stream_to(&server, None).await, &offered).await;
    let answer = client
        .ask(&call(1, "echo", json!({ "text": "hello" })))
        .await;
    assert_eq!(text(&answer), "hello");
    let refused = client.ask(&call(2, "add", json!({ "a": 1, "b": 2 }))).await;
    let why = refused["error"]["message"].as_str().unwrap();
    assert!(why.contains("math"), "{refused}");
    assert_eq!(client.close_code().await, CloseCode::Policy);
}

#[tokio::test]
async fn without_the_authorization_server_the_answer_is_later() {
    let key = SigningKey::es256("first");
    let issuer = AuthorizationServer::start(&[&key]).await;
    issuer.set_down(true);
    let server = Server::announced(trusting(&issuer, &[])).await;
    let token = key.token(&issuer.claims(RESOURCE));
    let ask = || post_modern(&server.mcp, &echo()).bearer_auth(&token).send();
    let later = ask().await.unwrap();
    assert_eq!(later.status(), 503);
    assert!(later.headers().contains_key("retry-after"));
    assert_eq!(challenge(&later), "");
    let (status, said) = server.readiness().await;
    assert_eq!(status, 503);
    assert!(said.to_string().contains("authorization server"), "{said}");

    issuer.set_down(false);
    server.wait_for_readiness(200).await;
    assert_eq!(ask().await.unwrap().status(), 200);
    let status = reqwest::get(format!("{}/status", server.admin))
        .await
        .unwrap();
    let status: Value = status.json().await.unwrap();
    assert_eq!(status["issuers"][0]["issuer"], issuer.issuer.as_str());
    assert_eq!(status["issuers"][0]["keys"], 1);
    let metrics = reqwest::get(format!("{}/metrics", server.admin))
        .await
        .unwrap();
    let metrics = metrics.text().await.unwrap();
    for metric in [
        "shoal_auth_attempts_total{",
        "shoal_outcome=\"unavailable\"",
        "shoal_auth_server_requests_total{",
    ] {
        assert!(metrics.contains(metric), "{metric}");
    }
}

#[tokio::test]
async fn a_bound_token_is_its_clients_alone() {
    let (issuer, key, server) = start(&[("SHOAL_AUTH__DPOP", "accepted")]).await;
    let client = SigningKey::es256("client");
    let mut claims = issuer.claims(RESOURCE);
    claims["cnf"] = json!({ "jkt": client.thumbprint() });
    let token = key.token(&claims);
    let proof = client.proof(&SigningKey::proof_claims("POST", RESOURCE, &token));
    let ask = || {
        let request = post_modern(&server.mcp, &echo()).header("dpop", &proof);
        request
            .header("authorization", format!("DPoP {token}"))
            .send()
    };
    assert_eq!(text(&response(ask().await.unwrap()).await), "hello");
    let again = ask().await.unwrap();
    assert_eq!(again.status(), 401);
    let told = challenge(&again);
    assert!(
        told.starts_with("DPoP ") && told.contains("error=\"invalid_dpop_proof\""),
        "{told}"
    );
    let stolen = post_modern(&server.mcp, &echo()).bearer_auth(&token).send();
    assert_eq!(stolen.await.unwrap().status(), 401);
}
