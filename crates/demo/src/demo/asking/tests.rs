use rmcp::model::{ElicitResult, ElicitationAction, ErrorCode};
use serde_json::json;

use crate::{
    DemoServer,
    tests::{Client, capabilities_of, modern_meta, text},
};

fn able(action: ElicitationAction) -> Client {
    Client::able(ElicitResult::new(action))
}

fn booking(guests: i64) -> Client {
    let content = json!({ "guests": guests, "date": "Friday" });
    Client::able(ElicitResult::new(ElicitationAction::Accept).with_content(content))
}

#[tokio::test]
async fn book_table_books_what_the_user_filled_in() {
    let ask = json!({ "restaurant": "Chez Ada" });
    let session = booking(4).connect(DemoServer::new()).await;
    assert_eq!(
        session.text("book_table", ask.clone()).await,
        "booked Chez Ada for 4 on Friday"
    );
    let session = able(ElicitationAction::Decline)
        .connect(DemoServer::new())
        .await;
    assert_eq!(
        session.text("book_table", ask.clone()).await,
        "not booked: declined"
    );
    let session = able(ElicitationAction::Cancel)
        .connect(DemoServer::new())
        .await;
    assert_eq!(
        session.text("book_table", ask.clone()).await,
        "not booked: cancelled"
    );
    let session = booking(21).connect(DemoServer::new()).await;
    assert_eq!(session.call("book_table", ask).await.is_error, Some(true));
}

#[tokio::test]
async fn other_questions_reach_the_client() {
    let session = able(ElicitationAction::Accept)
        .connect(DemoServer::new())
        .await;
    let account = json!({ "service": "mail" });
    assert_eq!(
        session.text("connect_account", account).await,
        "connected mail"
    );
    let summary = session.text("summarize", json!({ "text": "long" })).await;
    assert_eq!(summary, "summary: a sample of 100 tokens");
    assert_eq!(
        session.text("list_roots", json!({})).await,
        "file:///one\nfile:///two"
    );
    let odd = session
        .call("connect_account", json!({ "service": "a/b" }))
        .await;
    assert_eq!(odd.is_error, Some(true));
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_told_so() {
    let questions = [
        ("book_table", json!({ "restaurant": "Chez Ada" })),
        ("connect_account", json!({ "service": "mail" })),
        ("summarize", json!({ "text": "long" })),
        ("list_roots", json!({})),
    ];
    let session = Client::plain().connect(DemoServer::new()).await;
    for (tool, arguments) in questions {
        let result = session.call(tool, arguments.clone()).await;
        assert_eq!(result.is_error, Some(true));
        assert!(text(&result).starts_with("this client does not support"));

        let context = session.context(modern_meta(Default::default()));
        let error = session
            .call_directly(tool, arguments, context)
            .await
            .expect_err("is refused");
        assert_eq!(error.code, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY);
        assert!(error.data.expect("names the capability")["requiredCapabilities"].is_object());
    }
}

#[tokio::test]
async fn a_modern_request_can_be_asked_through_a_peer_that_allows_it() {
    let client = booking(2);
    let meta = modern_meta(capabilities_of(&client));
    let session = client.connect(DemoServer::new()).await;
    let ask = json!({ "restaurant": "Chez Ada" });
    let result = session
        .call_directly("book_table", ask, session.context(meta))
        .await;
    assert_eq!(
        text(&result.expect("completes")),
        "booked Chez Ada for 2 on Friday"
    );
}
