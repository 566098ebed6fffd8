use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::future::join_all;
use serde_json::{Value, json};

use super::setting::until;
use crate::client::{Session, call, modern_call, post_modern, response, text};

/// Several tasks call tools, both without a session and in sessions that they opened before. Each call must be
/// answered.
pub(super) async fn under_load(url: &str, tools: &[&str], act: impl AsyncFnOnce()) {
    let session = Session::open(url).await;
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let callers = tools.iter().enumerate().flat_map(|(at, tool)| {
        let (session, over, answered) = (&session, &over, &answered);
        [false, true].into_iter().map(move |is_modern| async move {
            let mut id = at as u64 * 1_000_000;
            while !over.load(Ordering::Relaxed) {
                id += 1;
                let said = json!({ "text": format!("call {id}") });
                let answer: Value = match is_modern {
                    true => {
                        let call = modern_call(id, tool, said);
                        response(post_modern(url, &call).send().await.unwrap()).await
                    }
                    false => session.ask(&call(id, tool, said)).await,
                };
                assert_eq!(text(&answer), format!("CALL {id}"));
                answered.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let act = async {
        act().await;
        let enough = answered.load(Ordering::Relaxed) + 20;
        until(async || answered.load(Ordering::Relaxed) >= enough).await;
        over.store(true, Ordering::Relaxed);
    };
    tokio::join!(join_all(callers), act);
}
