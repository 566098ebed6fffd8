//! Foreign URLs that Shoal must not request: in redirects, tokens and resource requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::response::Redirect;
use serde_json::json;
use shoal_auth::fixture::{AuthorizationServer, SigningKey};

use crate::harness::{Family, RESOURCE, Request, serve, trusting};
use crate::process::Server;

/// The count is that of received requests.
async fn inner() -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let router = Router::new().fallback(async move || {
        count.fetch_add(1, Ordering::SeqCst);
        "{}"
    });
    (listen(router).await, asked)
}

async fn listen(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

pub(crate) async fn family() -> Family {
    let mut family = Family::new("SSRF");
    let key = SigningKey::es256("first");
    let (inside, asked) = inner().await;
    let redirects = async |status: u16| {
        let to = inside.clone();
        let router = Router::new().fallback(async move || match status {
            303 => Redirect::to(&to),
            307 => Redirect::temporary(&to),
            _ => Redirect::permanent(&to),
        });
        listen(router).await
    };
    for status in [303, 307, 308] {
        let issuer = redirects(status).await;
        let claims = json!({ "iss": issuer, "aud": RESOURCE, "sub": "alice", "scope": "mcp", "exp": shoal_auth::fixture::now() + 600 });
        for (what, more) in [
            ("metadata", String::new()),
            ("keys", format!(", jwks_url = '{issuer}/jwks'")),
        ] {
            let issuers = format!("[{{ issuer = '{issuer}', algorithms = ['ES256']{more} }}]");
            let server = Server::announced(serve(&[
                ("SHOAL_AUTH__MODE", "oauth"),
                ("SHOAL_AUTH__RESOURCE", RESOURCE),
                ("SHOAL_AUTH__ISSUERS", &issuers),
            ]))
            .await;
            let got = Request::echo()
                .bearer(&key.token(&claims))
                .send(&server.mcp)
                .await;
            family.row(
                format!("{what} that redirect with {status}"),
                "503 cannot be authenticated",
                got,
            );
        }
    }
    family.is(
        "somebody followed a redirect",
        false,
        asked.load(Ordering::SeqCst) > 0,
    );

    let issuer = AuthorizationServer::start(&[&key]).await;
    let server = Server::of(trusting(&issuer)).await;
    for name in ["jku", "x5u", "iss"] {
        let mut header = json!({ "alg": "ES256", "kid": "other" });
        let mut claims = issuer.claims(RESOURCE);
        if name == "iss" {
            claims["iss"] = json!(inside);
        } else {
            header[name] = json!(inside);
        }
        let got = Request::echo()
            .bearer(&key.sign(&header, &claims))
            .send(&server.mcp)
            .await;
        family.row(format!("a token names an address in {name}"), "401", got);
    }
    family.is(
        "somebody asked what a token names",
        false,
        asked.load(Ordering::SeqCst) > 0,
    );
    let uri = format!("{inside}/secret");
    let read = Request::modern("resources/read", json!({ "uri": uri }));
    let read = read.bearer(&key.token(&issuer.claims(RESOURCE)));
    family.row(
        "a resource that is an address",
        "200 Resource not found",
        read.send(&server.mcp).await,
    );
    family.is("somebody read it", false, asked.load(Ordering::SeqCst) > 0);
    family
}
