//! Every row of `refusals/rows.md`, sent over a real socket, and explained in `docs/errors.md`.

mod everybody;
mod headers;
mod legacy;
mod modern;
mod page;
mod websocket;

use reqwest::RequestBuilder;
use serde_json::json;

use self::page::Page;
use crate::server::{Server, rpc};

#[tokio::test]
async fn every_row_is_answered_as_it_says() {
    let mut page = Page::new();
    everybody::callers(&mut page).await;
    everybody::tokens(&mut page).await;
    headers::ambiguous(&mut page).await;
    headers::hosts(&mut page).await;
    headers::encodings(&mut page).await;
    everybody::limits(&mut page).await;
    everybody::shares(&mut page).await;
    everybody::malformed(&mut page).await;
    legacy::requests(&mut page).await;
    legacy::sessions(&mut page).await;
    websocket::handshakes(&mut page).await;
    modern::requests(&mut page).await;
    modern::mirrored(&mut page).await;
    modern::unsettled(&mut page).await;
    modern::outcomes(&mut page).await;
    let untested = page.untested();
    assert!(untested.is_empty(), "{untested:#?}");
}

#[test]
fn the_page_of_errors_has_every_code_and_status() {
    let page = Page::new();
    let unexplained = page.unexplained();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
}

fn ping() -> String {
    rpc("ping", &json!({})).to_string()
}

fn initialize(server: &Server) -> RequestBuilder {
    server.post(rpc("initialize", &json!({"protocolVersion": "2025-11-25"})).to_string())
}
