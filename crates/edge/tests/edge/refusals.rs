//! Every row of `refusals/rows.md`, sent over a real socket, and explained in `docs/errors.md`.

mod everybody;
mod headers;
mod legacy;
mod modern;
mod rows;
mod websocket;

use reqwest::RequestBuilder;
use serde_json::json;

use self::rows::Rows;
use crate::server::{Server, rpc};

#[tokio::test]
async fn every_row_is_answered_as_it_says() {
    let mut rows = Rows::new();
    everybody::callers(&mut rows).await;
    everybody::tokens(&mut rows).await;
    headers::ambiguous(&mut rows).await;
    headers::hosts(&mut rows).await;
    headers::encodings(&mut rows).await;
    everybody::limits(&mut rows).await;
    everybody::shares(&mut rows).await;
    everybody::malformed(&mut rows).await;
    legacy::requests(&mut rows).await;
    legacy::sessions(&mut rows).await;
    websocket::handshakes(&mut rows).await;
    modern::requests(&mut rows).await;
    modern::mirrored(&mut rows).await;
    modern::unsettled(&mut rows).await;
    modern::outcomes(&mut rows).await;
    let untested = rows.untested();
    assert!(untested.is_empty(), "{untested:#?}");
}

#[test]
fn the_page_of_errors_has_every_code_and_status() {
    let rows = Rows::new();
    let unexplained = rows.unexplained();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
}

fn ping() -> String {
    rpc("ping", &json!({})).to_string()
}

fn initialize(server: &Server) -> RequestBuilder {
    server.post(rpc("initialize", &json!({"protocolVersion": "2025-11-25"})).to_string())
}
