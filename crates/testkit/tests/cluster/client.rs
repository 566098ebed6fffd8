use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};
use sse_stream::{Sse, SseStream};

pub(crate) const SOON: Duration = Duration::from_secs(40);

pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
    session: String,
}

pub(crate) struct Events {
    stream: std::pin::Pin<Box<dyn futures::Stream<Item = Option<Sse>> + Send>>,
    pub(crate) last_id: String,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Value,
}

impl Client {
    pub(crate) async fn open(url: &str) -> Self {
        let mut client = Self {
            http: reqwest::Client::new(),
            url: url.to_owned(),
            session: String::new(),
        };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "1" }
        });
        let request = client.request("initialize", &json!(0), &params);
        let answer = loop {
            let post = client.http.post(url).json(&request).headers(headers());
            let answer = within(post.send()).await.unwrap();
            if answer.status() != 503 {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        assert_eq!(answer.status(), 200, "{answer:?}");
        let session = &answer.headers()["mcp-session-id"];
        client.session = session.to_str().unwrap().to_owned();
        client
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn at(&self, url: &str) -> Self {
        Self {
            http: self.http.clone(),
            url: url.to_owned(),
            session: self.session.clone(),
        }
    }

    pub(crate) fn bringing(&self, headers: &[(&'static str, &'static str)]) -> Self {
        let headers = headers.iter().map(|&(name, value)| {
            let value = reqwest::header::HeaderValue::from_static(value);
            (reqwest::header::HeaderName::from_static(name), value)
        });
        let http = reqwest::Client::builder().default_headers(headers.collect());
        Self {
            http: http.build().unwrap(),
            url: self.url.clone(),
            session: self.session.clone(),
        }
    }

    pub(crate) fn with_session(&self, session: &str) -> Self {
        Self {
            http: self.http.clone(),
            url: self.url.clone(),
            session: session.to_owned(),
        }
    }

    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    fn request(&self, method: &str, id: &Value, params: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    async fn send(&self, message: &Value) -> reqwest::Response {
        let post = self.http.post(&self.url).json(message).headers(headers());
        let post = post.header("mcp-session-id", &self.session);
        within(post.send()).await.unwrap()
    }

    pub(crate) async fn post(&self, message: &Value) -> Answer {
        let answer = self.send(message).await;
        let retry_after = answer.headers().get("retry-after");
        let retry_after = retry_after.map(|after| after.to_str().unwrap().to_owned());
        let status = answer.status().as_u16();
        let text = within(answer.text()).await.unwrap();
        let mut data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let last = data.next_back().unwrap_or(&text);
        Answer {
            status,
            retry_after,
            body: serde_json::from_str(last).unwrap_or_default(),
        }
    }

    fn call_of(&self, id: u64, tool: &str, arguments: &Value) -> Value {
        let params = json!({
            "name": tool,
            "arguments": arguments,
            "_meta": { "progressToken": id }
        });
        self.request("tools/call", &json!(id), &params)
    }

    pub(crate) async fn stream_with(
        &self,
        id: u64,
        tool: &str,
        arguments: &Value,
        meta: Value,
    ) -> Events {
        let mut call = self.call_of(id, tool, arguments);
        for (key, value) in meta.as_object().unwrap() {
            call["params"]["_meta"][key] = value.clone();
        }
        let answer = self.send(&call).await;
        assert_eq!(answer.status(), 200, "{:?}", answer.text().await);
        Events::of(answer)
    }

    pub(crate) async fn hang_up(&self, id: u64, tool: &str, arguments: &Value, after: Duration) {
        let call = self.call_of(id, tool, arguments);
        let post = self.http.post(&self.url).json(&call).headers(headers());
        let post = post.header("mcp-session-id", &self.session);
        let answering = async { post.send().await?.bytes().await };
        let _ = tokio::time::timeout(after, answering).await;
    }

    pub(crate) async fn call(&self, id: u64, tool: &str, arguments: &Value) -> Answer {
        self.post(&self.call_of(id, tool, arguments)).await
    }

    pub(crate) async fn stream(&self, id: u64, tool: &str, arguments: &Value) -> Events {
        let answer = self.send(&self.call_of(id, tool, arguments)).await;
        assert_eq!(answer.status(), 200, "{:?}", answer.text().await);
        Events::of(answer)
    }

    pub(crate) async fn stream_patiently(&self, id: u64, tool: &str, arguments: &Value) -> Events {
        let deadline = tokio::time::Instant::now() + SOON;
        loop {
            let answer = self.send(&self.call_of(id, tool, arguments)).await;
            if answer.status() == 200 {
                return Events::of(answer);
            }
            let (status, text) = (answer.status(), answer.text().await);
            assert_eq!(status, 503, "{text:?}");
            assert!(tokio::time::Instant::now() < deadline, "{text:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub(crate) async fn answered(&self, id: u64, tool: &str, arguments: &Value) -> Vec<Value> {
        let answer = self.send(&self.call_of(id, tool, arguments)).await;
        let kind = answer.headers().get("content-type");
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if !is_stream {
            return vec![within(answer.json()).await.unwrap()];
        }
        let mut events = Events::of(answer);
        let mut all = events.rest().await;
        let is_answer = |message: &Value| message.get("method").is_none();
        let deadline = tokio::time::Instant::now() + SOON;
        while !all.last().is_some_and(is_answer) {
            assert!(tokio::time::Instant::now() < deadline, "no answer: {all:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
            let last_id = std::mem::take(&mut events.last_id);
            let get = self.http.get(&self.url).headers(headers());
            let get = get.header("mcp-session-id", &self.session);
            let again = within(get.header("last-event-id", &last_id).send()).await;
            events = match again {
                Ok(answer) if answer.status() == 200 => Events::of(answer),
                Ok(answer) => {
                    assert_eq!(answer.status(), 503, "{:?}", answer.text().await);
                    events
                }
                Err(_) => events,
            };
            if events.last_id.is_empty() {
                events.last_id = last_id;
            }
            all.extend(events.rest().await);
        }
        all
    }

    pub(crate) async fn stream_of(&self, request: &Value) -> Events {
        within(async {
            loop {
                let answer = self.send(request).await;
                if answer.status() == 200 {
                    return Events::of(answer);
                }
                assert_eq!(answer.status(), 503, "{:?}", answer.text().await);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await
    }

    pub(crate) async fn resume(&self, last_id: &str) -> Events {
        let get = self.http.get(&self.url).headers(headers());
        let get = get.header("mcp-session-id", &self.session);
        let answer = within(get.header("last-event-id", last_id).send()).await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 200, "{:?}", answer.text().await);
        Events::of(answer)
    }

    pub(crate) async fn listen(&self) -> Events {
        let get = self.http.get(&self.url).headers(headers());
        let answer = within(get.header("mcp-session-id", &self.session).send()).await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 200, "{:?}", answer.text().await);
        Events::of(answer)
    }

    pub(crate) async fn close(&self) {
        let delete = self.http.delete(&self.url).headers(headers());
        let answer = within(delete.header("mcp-session-id", &self.session).send()).await;
        assert!(answer.unwrap().status().is_success());
    }

    pub(crate) async fn resume_status(&self, last_id: &str) -> u16 {
        let get = self.http.get(&self.url).headers(headers());
        let get = get.header("mcp-session-id", &self.session);
        let answer = within(get.header("last-event-id", last_id).send()).await;
        answer.unwrap().status().as_u16()
    }

    pub(crate) async fn echo_patiently(&self, id: u64) {
        let text = self.text(id, "echo", &json!({ "nonce": "n" })).await;
        assert_eq!(text, "n");
    }

    pub(crate) async fn text(&self, id: u64, tool: &str, arguments: &Value) -> String {
        let deadline = tokio::time::Instant::now() + SOON;
        loop {
            let answer = self.call(id, tool, arguments).await;
            let not_executed = answer.body["error"]["code"] == 50301;
            if answer.status == 200 && !not_executed {
                return text_of(&answer.body).to_owned();
            }
            assert!(answer.status == 503 || not_executed, "{answer:?}");
            assert!(tokio::time::Instant::now() < deadline, "{answer:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Events {
    fn of(answer: reqwest::Response) -> Self {
        let events = SseStream::from_bytes_stream(answer.bytes_stream());
        Self {
            stream: Box::pin(events.map(|event| event.ok())),
            last_id: String::new(),
        }
    }

    /// `None` at the stream's end, broken or not. Events without data only update the id.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let event = within(self.stream.next()).await??;
            if let Some(id) = event.id {
                self.last_id = id;
            }
            if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                return Some(serde_json::from_str(&data).unwrap());
            }
        }
    }

    pub(crate) async fn primed(&mut self) {
        while self.last_id.is_empty() {
            let event = within(self.stream.next()).await.flatten().unwrap();
            self.last_id = event.id.unwrap_or_default();
        }
    }

    pub(crate) async fn rest(&mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(message) = self.next().await {
            all.push(message);
        }
        all
    }
}

/// Opens the stream of HTTP+SSE. Also returns the path for the client's messages, which works at
/// any edge.
pub(crate) async fn single_stream(mcp_url: &str) -> (Events, String) {
    let get = reqwest::Client::new().get(beside(mcp_url, "/sse"));
    let answer = within(get.headers(headers()).send()).await.unwrap();
    assert_eq!(answer.status(), 200, "{:?}", answer.text().await);
    let mut events = Events::of(answer);
    let endpoint = within(events.stream.next()).await.flatten().unwrap();
    (events, endpoint.data.unwrap())
}

pub(crate) async fn post_beside(mcp_url: &str, messages: &str, message: &Value) {
    let post = reqwest::Client::new().post(beside(mcp_url, messages));
    let answer = within(post.json(message).send()).await.unwrap();
    assert_eq!(answer.status(), 202, "{:?}", answer.text().await);
}

fn beside(mcp_url: &str, path: &str) -> String {
    format!("{}{path}", mcp_url.strip_suffix("/mcp").unwrap())
}

pub(crate) fn text_of(response: &Value) -> &str {
    response["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text in {response}"))
}

pub(crate) fn progress_of(messages: &[Value]) -> Vec<u64> {
    let progress = |message: &Value| message["params"]["progress"].as_f64();
    let numbers = messages.iter().filter_map(progress);
    numbers.map(|number| number as u64).collect()
}

fn headers() -> reqwest::header::HeaderMap {
    let mut headers = reqwest::header::HeaderMap::new();
    let accept = "application/json, text/event-stream";
    headers.insert("accept", accept.parse().unwrap());
    headers.insert("mcp-protocol-version", "2025-11-25".parse().unwrap());
    headers
}

pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    let done = tokio::time::timeout(SOON, future).await;
    done.expect("in time")
}

pub(crate) fn modern_call(
    url: &str,
    tool: &str,
    arguments: &Value,
) -> impl Future<Output = reqwest::Result<String>> + Send + 'static {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = reqwest::Client::new()
        .post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .body(body.to_string());
    async move { request.send().await?.text().await }
}
