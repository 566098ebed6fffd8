mod setting;
mod tools;

use http::{Method, StatusCode};
use serde_json::Value;
use shoal_auth::TokenHash;
use shoal_ports::CallId;

use crate::config::{Operator, OperatorRole};
use setting::{HOSTILE, Port, here, text};

const TOKEN: &str = "correct-horse-battery-staple";

#[tokio::test]
async fn without_a_token_the_console_is_for_this_machine_only() {
    let (status, body) = here().get("/console/api/overview", &[]).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    for (listen, hosts) in [
        ("0.0.0.0:8081", &[][..]),
        ("10.0.0.1:8081", &[]),
        ("127.0.0.1:8081", &["*"]),
        ("127.0.0.1:8081", &["shoal.internal"]),
    ] {
        let port = Port::listening(listen, hosts, None);
        for path in ["/console/", "/console/main.js", "/console/api/overview"] {
            let (status, body) = port.get(path, &[]).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{listen} {path}");
            assert!(body.contains("server.admin_token"), "{body}");
        }
    }
}

#[tokio::test]
async fn a_token_that_is_set_is_asked_for() {
    for listen in ["0.0.0.0:8081", "127.0.0.1:8081"] {
        let port = Port::listening(listen, &[], Some(TOKEN));
        let (status, _) = port.get("/console/", &[]).await;
        assert_eq!(status, StatusCode::OK, "the page asks for it");
        let right = format!("Bearer {TOKEN}");
        let longer = format!("Bearer {TOKEN}x");
        let shorter = format!("Bearer {}", &TOKEN[1..]);
        let other = format!("Basic {TOKEN}");
        for wrong in ["", "Bearer", "Bearer ", TOKEN, &longer, &shorter, &other] {
            let sent = [("authorization", wrong)];
            let answer = port.send(Method::GET, "/console/api/overview", &sent).await;
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{wrong:?}");
            assert_eq!(answer.headers()["www-authenticate"], "Bearer");
            let deed = port.send(Method::POST, "/console/api/sessions/s1/end", &sent);
            assert_eq!(deed.await.status(), StatusCode::UNAUTHORIZED, "{wrong:?}");
        }
        assert!(port.node.deeds.lock().is_empty());
        let (status, _) = port
            .get("/console/api/overview", &[("authorization", &right)])
            .await;
        assert_eq!(status, StatusCode::OK);
    }
}

#[tokio::test]
async fn operators_do_what_their_roles_let_them() {
    let operator = |name: &str, role| Operator {
        name: name.to_owned(),
        sha256: TokenHash::of(format!("{name}'s token")),
        role,
    };
    let port = Port::of(&[
        operator("vera", OperatorRole::Viewer),
        operator("olaf", OperatorRole::Operator),
    ]);
    let seen = [
        "overview",
        "sessions",
        "sessions/s1",
        "calls",
        "errors",
        "tools",
        "tools/echo",
    ];
    let done = [
        "sessions/s1/end",
        "calls/019a0000-0000-7000-8000-000000000000/cancel",
        "tools/echo/call",
    ];
    for (token, sees, does) in [
        ("Bearer vera's token", true, false),
        ("Bearer olaf's token", true, true),
        ("Bearer vera", false, false),
        ("", false, false),
    ] {
        let sent = [("authorization", token), ("x-shoal-console", "1")];
        for path in seen {
            let path = format!("/console/api/{path}");
            let status = port.send(Method::GET, &path, &sent).await.status();
            assert_eq!(status != StatusCode::UNAUTHORIZED, sees, "{token} {path}");
            assert_ne!(status, StatusCode::FORBIDDEN, "{token} {path}");
        }
        let before = port.node.deeds.lock().len();
        for path in done {
            let path = format!("/console/api/{path}");
            let answer = port.send(Method::POST, &path, &sent).await;
            let status = answer.status();
            if does {
                assert!(
                    status != StatusCode::UNAUTHORIZED && status != StatusCode::FORBIDDEN,
                    "{path} {status}"
                );
            } else if sees {
                assert_eq!(status, StatusCode::FORBIDDEN, "{token} {path}");
                assert!(text(answer).await.contains("viewer"));
            } else {
                assert_eq!(status, StatusCode::UNAUTHORIZED, "{token} {path}");
            }
        }
        assert_eq!(port.node.deeds.lock().len() > before, does, "{token}");
    }
}

#[tokio::test]
async fn changes_need_the_header_that_only_the_page_sends() {
    let port = here();
    let path = "/console/api/sessions/s1/end";
    let forged = [
        ("content-type", "text/plain"),
        ("origin", "http://evil.example"),
    ];
    let answer = port.send(Method::POST, path, &forged).await;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(text(answer).await.contains("X-Shoal-Console"));
    assert!(port.node.deeds.lock().is_empty());
    let (status, _) = port.get(path, &[("x-shoal-console", "1")]).await;
    assert_eq!(
        status,
        StatusCode::METHOD_NOT_ALLOWED,
        "nothing happens by GET"
    );
    let answer = port
        .send(Method::POST, path, &[("x-shoal-console", "1")])
        .await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(*port.node.deeds.lock(), ["end s1"]);
    let gone = "/console/api/sessions/s2/end";
    let answer = port
        .send(Method::POST, gone, &[("x-shoal-console", "1")])
        .await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_reason_goes_along_within_bounds() {
    let port = here();
    let call = CallId::generate();
    let path = format!("/console/api/calls/{call}/cancel");
    let header = [("x-shoal-console", "1")];
    let long = format!(r#"{{"reason":"{}"}}"#, "x".repeat(1_000));
    for (body, status) in [
        ("", 200),
        (r#"{"reason":"too \u0007slow"}"#, 200),
        (long.as_str(), 200),
        (r#"{"why":"x"}"#, 400),
        ("no json", 400),
    ] {
        let answer = port.send_body(Method::POST, &path, &header, body).await;
        assert_eq!(answer.status(), status, "{body}");
    }
    let oversized = "x".repeat(5_000);
    let answer = port
        .send_body(Method::POST, &path, &header, &oversized)
        .await;
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let deeds = port.node.deeds.lock().clone();
    assert_eq!(deeds[0], format!("cancel {call}: cancelled by an operator"));
    assert!(deeds[1].ends_with(": too slow"), "{deeds:?}");
    assert!(deeds[2].len() < 350, "{deeds:?}");
    assert_eq!(deeds.len(), 3);
}

#[tokio::test]
async fn lists_are_bounded_and_say_what_was_left_out() {
    let port = here();
    for (query, status) in [
        ("sessions", 200),
        ("sessions?limit=7&filter=nobody", 200),
        ("calls?limit=100000", 200),
        ("errors?limit=-1", 400),
    ] {
        let (got, body) = port.get(&format!("/console/api/{query}"), &[]).await;
        assert_eq!(got, status, "{query}: {body}");
    }
    assert_eq!(*port.node.limits.lock(), [200, 7, 500]);
    let (_, body) = port.get("/console/api/sessions", &[]).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (&body["total"], &body["items"][0]["node"]),
        (&900.into(), &"me".into())
    );
    let filter = "x".repeat(129);
    let (status, _) = port
        .get(&format!("/console/api/sessions?filter={filter}"), &[])
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    for unknown in ["sessions/none", "sessions/%20", "nothing"] {
        let (status, _) = port.get(&format!("/console/api/{unknown}"), &[]).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{unknown}");
    }
}

#[tokio::test]
async fn what_clients_chose_is_data_and_never_markup() {
    let port = here();
    let answer = port.send(Method::GET, "/console/api/sessions", &[]).await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert_eq!(answer.headers()["cache-control"], "no-store");
    let body: Value = serde_json::from_str(&text(answer).await).unwrap();
    assert_eq!(body["items"][0]["client"], HOSTILE);
    for path in [
        "/console/",
        "/console/console.css",
        "/console/main.js",
        "/console/api/calls",
    ] {
        let answer = port.send(Method::GET, path, &[]).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let policy = answer.headers()["content-security-policy"]
            .to_str()
            .unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(
            answer.headers()["x-content-type-options"],
            "nosniff",
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_page_brings_everything_itself_and_writes_no_markup() {
    let port = here();
    let (_, page) = port.get("/console/", &[]).await;
    assert!(
        page.contains(r#"<script type="module" src="main.js">"#),
        "{page}"
    );
    for (path, _, text) in super::assets::ASSETS {
        for outside in ["http://", "https://", "//cdn"] {
            let found = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(outside), "{path} has {outside}");
        }
        for writes in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
        ] {
            assert!(!text.contains(writes), "{path} has {writes}");
        }
    }
    let (status, _) = port.get("/", &[]).await;
    assert_eq!(status, StatusCode::TEMPORARY_REDIRECT);
}

#[tokio::test]
async fn every_error_is_json_of_one_shape() {
    let port = here();
    let guarded = Port::listening("127.0.0.1:8081", &[], Some(TOKEN));
    let closed = Port::listening("0.0.0.0:8081", &[], None);
    let header = [("x-shoal-console", "1")];
    let cancel = format!("/console/api/calls/{}/cancel", CallId::generate());
    let oversized = "x".repeat(5_000);
    for (port, method, path, body, status) in [
        (&port, Method::GET, "/console/nothing", "", 404),
        (&port, Method::GET, "/console/api/nothing", "", 404),
        (&port, Method::GET, "/console/api/sessions/none", "", 404),
        (&port, Method::GET, "/console/api/tools/none", "", 404),
        (&port, Method::GET, "/console/api/sessions/%FF", "", 400),
        (&port, Method::GET, "/console/api/errors?limit=-1", "", 400),
        (&port, Method::POST, &cancel, "no json", 400),
        (&port, Method::POST, &cancel, "\u{0}", 400),
        (&port, Method::POST, &cancel, &oversized, 413),
        (&port, Method::GET, &cancel, "", 405),
        (&port, Method::POST, "/console/", "", 405),
        (&port, Method::DELETE, "/console/api/overview", "", 405),
        (&guarded, Method::GET, "/console/api/overview", "", 401),
        (&guarded, Method::GET, "/console/api/nothing", "", 401),
        (&closed, Method::GET, "/console/", "", 403),
    ] {
        let answer = port.send_body(method.clone(), path, &header, body).await;
        assert_eq!(answer.status(), status, "{method} {path}");
        let headers = answer.headers().clone();
        assert_eq!(
            headers["content-type"], "application/json",
            "{method} {path}"
        );
        assert_eq!(headers["cache-control"], "no-store", "{method} {path}");
        assert_eq!(
            status == 405,
            headers.contains_key("allow"),
            "{method} {path}"
        );
        assert_eq!(status == 401, headers.contains_key("www-authenticate"));
        let said: Value = serde_json::from_str(&text(answer).await).unwrap();
        let reason = said["error"].as_str().unwrap_or_default();
        assert!(!reason.is_empty(), "{method} {path}: {said}");
    }
}
