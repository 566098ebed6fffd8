use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use futures::stream;
use reqwest::{Method, RequestBuilder};
use serde_json::json;
use shoal_ports::{
    AuthError, Authenticated, Authenticator, Credentials, Grant, GrantNews, GrantWatch, Memo,
    Operation, Principal, TokenFault,
};
use shoal_protocol::RawJson;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::gateway::{TASK, event};
use crate::server::{Server, rpc};
use crate::sse::Events;

const SOON: Duration = Duration::from_secs(20);

pub(crate) const CALL: &str = "call";

#[derive(Default)]
pub(crate) struct Watching(watch::Sender<Option<GrantNews>>);

impl Watching {
    pub(crate) fn end(&self, why: AuthError) {
        self.0.send_replace(Some(GrantNews::Over(why)));
    }

    pub(crate) fn renew(&self, scopes: &[&str]) {
        let news = GrantNews::Renewed(granted(scopes));
        self.0.send_replace(Some(news));
    }
}

fn granted(scopes: &[&str]) -> Arc<Grant> {
    Arc::new(Grant {
        scopes: scopes.iter().map(|scope| Arc::from(*scope)).collect(),
        claims: RawJson::from_static("{}"),
        until: None,
        read: Memo::default(),
    })
}

#[async_trait]
impl Authenticator for Watching {
    async fn authenticate(&self, shown: Credentials<'_>) -> Result<Authenticated, AuthError> {
        shown.token.ok_or(AuthError::Missing)?;
        Ok(Authenticated {
            principal: Principal::new("alice"),
            grant: Some(granted(&[CALL])),
        })
    }

    fn authorize(&self, grant: &Grant, operation: &Operation<'_>) -> Result<(), AuthError> {
        match operation.method != "tools/call" || grant.has(CALL) {
            true => Ok(()),
            false => Err(AuthError::Scope([CALL.to_owned()].into())),
        }
    }

    fn watch(&self, token: &[u8], known: &Authenticated) -> GrantWatch {
        assert_eq!((token, known.principal.as_str()), (&b"secret"[..], "alice"));
        let news = self.0.subscribe();
        GrantWatch::new(stream::unfold(news, async |mut news| {
            news.changed().await.ok()?;
            let told = news.borrow_and_update().clone()?;
            Some((told, news))
        }))
    }
}

struct Setting {
    server: Server,
    tokens: Arc<Watching>,
}

impl Setting {
    async fn new() -> Self {
        let tokens = Arc::new(Watching::default());
        let server = Server::with_authenticator(tokens.clone(), |_| {}).await;
        Self { server, tokens }
    }

    async fn open(&self, request: RequestBuilder) -> Events {
        let request = request.header("authorization", "Bearer secret");
        Events::of(request.send().await.unwrap())
    }

    fn call(&self) -> RequestBuilder {
        let params = json!({"name": "slow", "arguments": {}});
        self.server.legacy(&rpc("tools/call", &params))
    }

    fn http_sse(&self) -> RequestBuilder {
        let request = self.server.request(Method::GET, "/sse");
        request.header("accept", "text/event-stream")
    }

    fn subscription(&self) -> RequestBuilder {
        let filter = json!({"notifications": {"toolsListChanged": true}});
        self.server.modern("subscriptions/listen", filter)
    }

    fn task(&self) -> RequestBuilder {
        let params = json!({"taskId": TASK});
        self.server.legacy(&rpc("tasks/result", &params))
    }
}

async fn rest(mut events: Events) -> Vec<String> {
    let reading = async {
        let mut blocks = Vec::new();
        while let Some(block) = events.block().await {
            blocks.push(block);
        }
        blocks
    };
    timeout(SOON, reading).await.expect("the stream goes on")
}

#[tokio::test]
async fn every_stream_ends_whose_token_is_taken_back() {
    let setting = Setting::new().await;
    let server = &setting.server;
    let streams = [
        setting.open(server.listen()).await,
        setting.open(setting.call()).await,
        setting.open(setting.subscription()).await,
        setting.open(setting.task()).await,
        setting.open(server.tool("slow")).await,
        setting.open(server.tool("long-write")).await,
        setting.open(setting.http_sse()).await,
    ];
    setting.tokens.end(AuthError::Invalid);
    let said = join_all(streams.into_iter().map(rest)).await;
    let last = |at: usize| said[at].last().cloned().unwrap_or_default();
    assert!(last(0).starts_with("retry: "), "{said:#?}");
    assert!(last(1).starts_with("retry: "), "{said:#?}");
    assert!(last(2).contains("\"resultType\":\"complete\""), "{said:#?}");
    assert!(last(3).starts_with("retry: "), "{said:#?}");
    // A repeatable call gets the refusal of its token. Other calls' outcomes are unknown.
    assert!(last(4).contains("-32600"), "{said:#?}");
    assert!(last(5).contains("50002"), "{said:#?}");
    assert!(last(6).starts_with("event: endpoint"), "{said:#?}");
    let cancelled = timeout(SOON, server.dispatcher.was_cancelled()).await;
    assert!(cancelled.unwrap().contains("closed the connection"));
    assert_eq!(server.load.open_streams(), 0);
}

#[tokio::test]
async fn what_has_begun_outlives_the_end_of_a_tokens_time() {
    let setting = Setting::new().await;
    let server = &setting.server;
    let mut call = setting.open(setting.call()).await;
    let of_call = server.gateway.stream().await;
    let mut http_sse = setting.open(setting.http_sse()).await;
    let of_http_sse = server.gateway.stream().await;
    http_sse.block().await.unwrap();
    let mut modern = setting.open(server.tool("slow")).await;
    let mut running = server.dispatcher.call().await;
    let reopened = [
        setting.open(server.listen()).await,
        setting.open(setting.subscription()).await,
    ];
    setting.tokens.end(AuthError::Token(TokenFault::Expired));
    // Once these streams have ended, the other streams have received the news too.
    join_all(reopened.into_iter().map(rest)).await;
    of_call.send(event(1, r#"{"a":1}"#)).await.unwrap();
    assert!(call.block().await.unwrap().contains(r#"{"a":1}"#));
    of_http_sse.send(event(1, r#"{"b":2}"#)).await.unwrap();
    assert!(http_sse.block().await.unwrap().contains(r#"{"b":2}"#));
    running.finish(r#"{"content":[]}"#).await;
    assert!(modern.block().await.unwrap().contains(r#""content":[]"#));
}
