use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use shoal_auth::fixture::{AuthorizationServer, CLIENT, now};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{Session, call};
use crate::harness::{Family, RESOURCE, Request, address, serve};
use crate::other_principals::legacy;
use crate::process::{SOON, Server};

const TOKEN: &str = "stolen";
/// How long a revoked token may still work at most, including the WebSocket's grace period.
const PROMISED: Duration = Duration::from_secs(20);

pub(crate) async fn family() -> Family {
    let mut family = Family::new("revoked tokens");
    let (by_file, by_issuer) = tokio::join!(removed_from_file(), inactive());
    for (attack, ended) in by_file {
        family.is(format!("{attack}, removed from the file"), true, ended);
    }
    for (attack, ended) in by_issuer {
        family.is(format!("{attack}, not active any more"), true, ended);
    }
    family
}

async fn removed_from_file() -> Vec<(&'static str, bool)> {
    let name = format!("shoal-attack-tokens-{}.toml", std::process::id());
    let file = std::env::temp_dir().join(name);
    let hash = shoal_node::config::TokenHash::of(TOKEN).to_hex();
    let entry = format!("[[tokens]]\nname = \"alice\"\nsha256 = \"{hash}\"\n");
    write(&file, &entry);
    let server = Server::of(serve(&[
        ("SHOAL_AUTH__MODE", "tokens"),
        ("SHOAL_AUTH__TOKENS_FILE", file.to_str().unwrap()),
        ("SHOAL_SERVER__WEBSOCKET", "true"),
    ]))
    .await;
    let ended = ends(&server, || write(&file, "tokens = []\n")).await;
    std::fs::remove_file(&file).unwrap();
    ended
}

async fn inactive() -> Vec<(&'static str, bool)> {
    let issuer = AuthorizationServer::start(&[]).await;
    let name = format!("shoal-attack-secret-{}", std::process::id());
    let secret = std::env::temp_dir().join(name);
    write(&secret, CLIENT.1);
    let issuers = format!(
        "[{{ issuer = '{}', introspection = {{ client_id = '{}', client_secret_file = '{}' }} }}]",
        issuer.issuer,
        CLIENT.0,
        secret.display()
    );
    // Without `exp`, only the revocation ends the token.
    let active = json!({ "active": true, "sub": "alice", "aud": RESOURCE, "iat": now() });
    issuer.say(TOKEN, active);
    let server = Server::of(serve(&[
        ("SHOAL_AUTH__MODE", "oauth"),
        ("SHOAL_AUTH__RESOURCE", RESOURCE),
        ("SHOAL_AUTH__ISSUERS", &issuers),
        ("SHOAL_AUTH__CACHED_FOR", "2s"),
        ("SHOAL_SERVER__WEBSOCKET", "true"),
    ]))
    .await;
    let revoke = || issuer.say(TOKEN, json!({ "active": false }));
    let ended = ends(&server, revoke).await;
    std::fs::remove_file(&secret).unwrap();
    ended
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
}

async fn ends(server: &Server, revoke: impl FnOnce()) -> Vec<(&'static str, bool)> {
    let url = &server.mcp;
    let session = Session::open_as(url, Some(TOKEN)).await.id;
    let forever = json!({ "steps": 600, "interval_ms": 1000 });
    let get = |line: &str| Request::of(line, "").without("Content-Length");
    let websocket = get("GET /mcp")
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header(
            "Sec-WebSocket-Protocol",
            &format!(
                "mcp.resume, mcp.session.{}",
                Session::open_as(url, Some(TOKEN)).await.id
            ),
        );
    let standalone = get("GET /mcp").header("Mcp-Session-Id", &session);
    let subscription = json!({ "notifications": { "toolsListChanged": true } });
    let requests = [
        ("a WebSocket", websocket),
        ("the stream of a GET", standalone),
        ("HTTP+SSE", get("GET /sse")),
        (
            "a subscription",
            Request::modern("subscriptions/listen", subscription),
        ),
        (
            "the stream of a call",
            legacy(&session, &call(7, "long_job", forever.clone())),
        ),
        ("a modern call", Request::call("long_job", forever)),
    ];
    let opening = requests.map(|(attack, request)| async move {
        let mut socket = TcpStream::connect(address(url)).await.unwrap();
        let request = request.bearer(TOKEN).bytes();
        socket.write_all(&request).await.unwrap();
        let mut head = vec![0; 12];
        let read = timeout(SOON, socket.read_exact(&mut head)).await;
        read.unwrap().unwrap();
        let status = String::from_utf8(head).unwrap();
        assert!(
            status.ends_with("200") || status.ends_with("101"),
            "{attack}: {status}"
        );
        (attack, socket)
    });
    let open = join_all(opening).await;
    revoke();
    let ending = open.into_iter().map(|(attack, mut socket)| async move {
        let mut rest = Vec::new();
        let ended = timeout(PROMISED, socket.read_to_end(&mut rest)).await;
        (attack, ended.is_ok())
    });
    join_all(ending).await
}
