//! What the server is told of who is calling.

use std::sync::Arc;

use serde_json::{Value, json};
use shoal_ports::Secret;

use super::harness::{Client, text};
use super::server::Server;

/// What the server saw in the headers of the last request of a method.
async fn seen(server: &Server, method: &str) -> Value {
    server.seen().await["headers"][method].clone()
}

#[tokio::test]
async fn headers_of_callers_are_passed_on_where_they_are_named() {
    for era in ["legacy", "modern"] {
        let server = Server::start(&["--era", era]).await;
        let mut config = server.config();
        let own = ("Authorization".to_owned(), Secret::new("Bearer shoal"));
        config.headers.extend([own]);
        config.forward = ["Authorization", "X-Team"].map(str::to_owned).to_vec();
        let running = server.backend_of(config).await;
        let catalog = running.catalog_where(|_| true).await;
        assert_eq!(catalog.headers, ["authorization", "x-team"].map(Arc::<str>::from));
        let brings = [
            ("authorization", "Bearer a"),
            ("x-team", "blue"),
            ("x-other", "no"),
        ];
        let client = Client::named("a").bringing(&brings);
        let arguments = json!({ "text": "x" });
        let outcome = running.call(&client, "echo", arguments.clone()).await;
        assert_eq!(text(&outcome), "x");
        let call = seen(&server, "tools/call").await;
        assert_eq!(call["authorization"], "Bearer a");
        assert_eq!(call["x-team"], "blue");
        assert_eq!(call["x-other"], Value::Null);
        // What nobody's call has caused is Shoal's own.
        let list = seen(&server, "tools/list").await;
        assert_eq!(list["authorization"], "Bearer shoal");
        if era == "legacy" {
            let opening = seen(&server, "initialize").await;
            assert_eq!(opening["authorization"], "Bearer a");
        }
        // What one caller has brought is not another's.
        let other = Client::named("b");
        running.call(&other, "echo", arguments).await;
        let call = seen(&server, "tools/call").await;
        assert_eq!(call["authorization"], "Bearer shoal");
        assert_eq!(call["x-team"], Value::Null);
    }
}
