use super::ping;
use super::rows::{Rows, compare};
use crate::raw;
use crate::server::Server;

pub(super) async fn ambiguous(rows: &mut Rows) {
    let server = Server::with(|config| config.endpoint.allowed_hosts.push("*".to_owned())).await;
    let send = async |lines: &str| raw::send(server.address, &raw::post(lines), &ping()).await;
    let host = "Host: localhost\r\n";

    let row = rows.row("no Host over HTTP/1.1");
    let answer = send("").await;
    compare(&row, answer.status, &answer.body);

    let row = rows.row("header twice that says one thing");
    for twice in [
        "Host: localhost",
        "Authorization: Bearer a",
        "Origin: http://localhost",
        "Content-Type: application/json",
        "Mcp-Session-Id: live",
        "Last-Event-ID: 1-2-3",
    ] {
        let (name, value) = twice.split_once(": ").unwrap();
        let may_be_repeated = ["Content-Type", "Mcp-Session-Id"].contains(&name);
        for second in [value, "other"] {
            if may_be_repeated && second == value {
                continue;
            }
            let lines = format!("{host}{twice}\r\n{}: {second}\r\n", name.to_lowercase());
            let answer = send(&lines).await;
            compare(&row, answer.status, &answer.body);
            let said = answer.body["error"]["message"].as_str().unwrap();
            assert!(said.contains(&name.to_lowercase()), "{said}");
        }
    }

    let row = rows.row("mirrored header twice");
    for name in [
        "MCP-Protocol-Version",
        "Mcp-Method",
        "Mcp-Name",
        "Mcp-Param-Region",
        "mcp-param-nobody-knows",
    ] {
        for (first, second) in [("a", "a"), ("a", "b"), ("2026-07-28", "2025-11-25")] {
            if first == second && name == "MCP-Protocol-Version" {
                continue;
            }
            let lines = format!("{host}{name}: {first}\r\n{name}: {second}\r\n");
            let answer = send(&lines).await;
            compare(&row, answer.status, &answer.body);
        }
    }

    let version = "Mcp-Session-Id: live\r\nMCP-Protocol-Version: 2025-11-25\r\n";
    let repeated = format!("{host}{version}MCP-Protocol-Version: 2025-11-25\r\n");
    assert_eq!(send(&repeated).await.status, 200);

    for several in ["Accept: text/plain", "X-Anything: 1", "Cookie: a=b"] {
        let lines = format!("{host}Mcp-Session-Id: live\r\n{several}\r\n{several}\r\n");
        assert_eq!(send(&lines).await.status, 200, "{several}");
    }
}

pub(super) async fn hosts(rows: &mut Rows) {
    let server = Server::start().await;
    let row = rows.row("Host unlike the authority of the target");
    for (host, target, fits) in [
        ("localhost:1", "http://localhost:2/mcp", false),
        ("localhost", "http://127.0.0.1/mcp", false),
        ("localhost:1", "http://LOCALHOST:1/mcp", true),
    ] {
        let mut head = raw::post(&format!("Host: {host}\r\nMcp-Session-Id: live\r\n"));
        head = head.replacen("/mcp", target, 1);
        let answer = raw::send(server.address, &head, &ping()).await;
        match fits {
            true => assert_eq!(answer.status, 200, "{:?}", answer.body),
            false => compare(&row, answer.status, &answer.body),
        }
    }
    // HTTP/2 names the host in the target, and may repeat it in a header.
    for (host, status) in [(None, 200), (Some("localhost:1"), 400)] {
        let client = reqwest::Client::builder().no_proxy();
        let client = client.http2_prior_knowledge().build().unwrap();
        let url = format!("http://{}/mcp", server.address);
        let mut request = client.post(url).body(ping());
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let request = request
            .header("content-type", "application/json")
            .header("accept", "*/*")
            .header("mcp-session-id", "live");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.version(), reqwest::Version::HTTP_2);
        assert_eq!(answer.status(), status, "{host:?}");
    }
}

pub(super) async fn encodings(rows: &mut Rows) {
    let server = Server::start().await;
    let row = rows.row("encoded body in a list");
    for (lines, plain) in [
        ("Content-Encoding: identity, gzip\r\n", false),
        ("Content-Encoding: gzip, identity\r\n", false),
        (
            "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n",
            false,
        ),
        (
            "Content-Encoding: gzip\r\nContent-Encoding: identity\r\n",
            false,
        ),
        ("Content-Encoding: identity\r\n", true),
        ("Content-Encoding: Identity , identity\r\n", true),
    ] {
        let lines = format!("Host: localhost\r\nMcp-Session-Id: live\r\n{lines}");
        let answer = raw::send(server.address, &raw::post(&lines), &ping()).await;
        match plain {
            true => assert_eq!(answer.status, 200, "{lines}"),
            false => compare(&row, answer.status, &answer.body),
        }
    }
}
