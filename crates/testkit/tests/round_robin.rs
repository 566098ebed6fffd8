//! The balancer in front of controllable servers.

#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use shoal_testkit::free_port;
use shoal_testkit::round_robin::{Edge, RoundRobin, TAG};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);

struct TestEdge {
    edge: Edge,
    breaks: Arc<Notify>,
    gone: mpsc::UnboundedReceiver<()>,
}

struct Told(mpsc::UnboundedSender<()>, Arc<Notify>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

impl TestEdge {
    /// Starts an edge that breaks before the answer to `/break` and in the middle of `/half`.
    async fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let edge = Edge {
            name: name.to_owned(),
            address: listener.local_addr().unwrap(),
            admin: None,
        };
        let (sender, gone) = mpsc::unbounded_channel();
        let breaks = Arc::new(Notify::new());
        let told = breaks.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (sender, breaks) = (sender.clone(), told.clone());
                let service = service_fn(move |request| {
                    answer(name, request, Told(sender.clone(), breaks.clone()))
                });
                let connection = http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { edge, breaks, gone }
    }
}

type Answer = Response<http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error>>;

async fn answer(
    name: &'static str,
    request: Request<Incoming>,
    told: Told,
) -> Result<Answer, std::io::Error> {
    let broken = || std::io::Error::other("as told");
    let path = request.uri().path().to_owned();
    let asked = request.into_body().collect().await.unwrap().to_bytes();
    let said = format!("{name}:{}", String::from_utf8(asked.to_vec()).unwrap());
    let first = stream::iter([Ok(Frame::data(Bytes::from(said)))]);
    let frames = match path.as_str() {
        "/break" => return Err(broken()),
        "/half" => {
            let rest = stream::once(async move {
                told.1.notified().await;
                Err(broken())
            });
            first.chain(rest).boxed()
        }
        "/stream" => {
            let rest = stream::pending().map(move |never: Infallible| {
                let _held = &told;
                match never {}
            });
            first.chain(rest).boxed()
        }
        _ => first.boxed(),
    };
    Ok(Response::new(StreamBody::new(frames).boxed_unsync()))
}

async fn before(edges: Vec<Edge>) -> (RoundRobin, String) {
    let anywhere: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let proxy = RoundRobin::start(anywhere, edges).await.unwrap();
    let url = format!("http://{}", proxy.address());
    (proxy, url)
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

async fn said_by(http: &reqwest::Client, url: &str) -> String {
    let answer = http.post(url).body("hello").send().await.unwrap();
    answer.text().await.unwrap()
}

#[tokio::test]
async fn requests_of_one_connection_go_round() {
    let (one, two) = (TestEdge::start("one").await, TestEdge::start("two").await);
    let (_proxy, url) = before(vec![one.edge, two.edge]).await;
    let http = client();
    let mut said = Vec::new();
    for _ in 0..4 {
        said.push(said_by(&http, &url).await);
    }
    assert_eq!(said, ["one:hello", "two:hello", "one:hello", "two:hello"]);
}

#[tokio::test]
async fn an_edge_that_takes_no_connections_is_passed_over() {
    let one = TestEdge::start("one").await;
    let nobody = Edge {
        name: "nobody".to_owned(),
        address: ([127, 0, 0, 1], free_port::reserve().unwrap()).into(),
        admin: None,
    };
    let (_proxy, url) = before(vec![nobody.clone(), one.edge]).await;
    for _ in 0..3 {
        assert_eq!(said_by(&client(), &url).await, "one:hello");
    }
    let (_proxy, url) = before(vec![nobody]).await;
    let answer = client().get(url).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
}

#[tokio::test]
async fn what_an_edge_breaks_is_broken_for_the_client() {
    let one = TestEdge::start("one").await;
    let (proxy, url) = before(vec![one.edge]).await;
    let http = client();
    let broken = http.get(format!("{url}/break")).header(TAG, "first");
    broken.send().await.unwrap_err();
    let half = http.get(format!("{url}/half")).header(TAG, "second");
    let half = half.send().await.unwrap();
    one.breaks.notify_one();
    half.text().await.unwrap_err();
    let breaks = proxy.breaks();
    let breaks: Vec<_> = breaks
        .iter()
        .map(|b| (b.tag.as_str(), b.edge.as_str()))
        .collect();
    assert_eq!(breaks, [("first", "one"), ("second", "one")]);
}

#[tokio::test]
async fn a_client_that_leaves_is_gone_for_the_edge() {
    let mut one = TestEdge::start("one").await;
    let (_proxy, url) = before(vec![one.edge]).await;
    let answer = client().get(format!("{url}/stream")).send().await.unwrap();
    let mut body = answer.bytes_stream();
    assert_eq!(body.next().await.unwrap().unwrap(), "one:");
    drop(body);
    timeout(SOON, one.gone.recv()).await.unwrap().unwrap();
}
