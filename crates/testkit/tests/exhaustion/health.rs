//! Upstream servers whose calls fail for one principal must stay available to the other.
//!
//! The hostile principal makes few calls, as a quota would allow. All its calls fail: the server
//! answers 5xx, closes the connection, is slow, or exits.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::callers::{Auth, Callers};
use crate::honest::Honest;
use crate::hostile::Hostile;
use crate::server::{Form, Server};
use crate::{ALONE, Attack};

const START: Duration = Duration::from_secs(20);
const TIME: Duration = Duration::from_secs(3);
const SELDOM: Duration = Duration::from_secs(1);
/// The pause of each concurrent caller between two calls, so that all together make about ten calls
/// a second.
const PAUSE: Duration = Duration::from_millis(400);

struct Upstream {
    url: String,
    process: Child,
}

impl Upstream {
    fn start(script: &str) -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../worker/tests/fixtures");
        let mut process = Command::new("python3")
            .arg("-u")
            .arg(fixtures.join(script))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        assert!(url.starts_with("http"), "{script} does not start: {url:?}");
        Self { url, process }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Tools {
    fails: &'static [(&'static str, &'static str)],
    works: &'static [(&'static str, &'static str)],
}

const HTTP: Tools = Tools {
    fails: &[
        ("status", r#"{"status":500}"#),
        ("dies", "{}"),
        ("slow", r#"{"seconds":1}"#),
    ],
    works: &[("echo", r#"{"text":"well"}"#), ("session", "{}")],
};
const API: Tools = Tools {
    fails: &[("dies", "{}")],
    works: &[
        ("getPet", r#"{"petId":"1"}"#),
        ("createPet", r#"{"name":"Mia","nick":null}"#),
    ],
};

/// Lists name, prefix, backend and calls. Each kind has a pool with one server and a pool with two.
fn pools<'a>(http: &[Upstream], api: &[Upstream]) -> [(&'a str, &'a str, String, &'a Tools); 4] {
    let list = |urls: Vec<String>| format!("{urls:?}");
    let document = format!("{:?}", format!("{}/openapi.json", api[0].url));
    let urls = list(http.iter().map(|server| server.url.clone()).collect());
    let bases = api.iter().map(|server| format!("{}/v1", server.url));
    let bases = list(bases.collect());
    let http1 = format!("{{ http = {{ url = {:?} }} }}", http[0].url);
    let http2 = format!("{{ http = {{ urls = {urls} }} }}");
    let api1 = format!("{{ openapi = {{ document = {document} }} }}");
    let api2 = format!("{{ openapi = {{ document = {document}, base_urls = {bases} }} }}");
    [
        ("http1", "h1_", http1, &HTTP),
        ("http2", "h2_", http2, &HTTP),
        ("api1", "a1_", api1, &API),
        ("api2", "a2_", api2, &API),
    ]
}

fn read(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap()
}

async fn work(honest: &Honest, tools: &[(String, Value)], time: Duration) -> Vec<String> {
    let mut failed = Vec::new();
    let until = Instant::now() + time;
    let mut calls = 0;
    while calls == 0 || Instant::now() < until {
        for (tool, arguments) in tools {
            calls += 1;
            if let Err(why) = honest.is_answered(tool, arguments).await {
                failed.push(format!("{tool}: {why}"));
            }
        }
        sleep(SELDOM.min(time)).await;
    }
    failed
}

async fn others_calls_succeed(form: Form) {
    let _alone = ALONE.lock().await;
    let http = [(); 2].map(|()| Upstream::start("streamable.py"));
    let api = [(); 2].map(|()| Upstream::start("petstore.py"));
    let pools = pools(&http, &api);
    let more = pools
        .clone()
        .map(|(pool, prefix, backend, _)| (pool, prefix, backend));
    let callers = Callers::of(Auth::Tokens).await;
    let server = Server::with_pools(form, &callers, &more).await;
    let honest = Honest::new(server.url(), &callers.honest);
    honest.ready().await;
    for (_, prefix, _, Tools { fails, works }) in pools {
        let tools: Vec<_> = works
            .iter()
            .map(|(tool, arguments)| (format!("{prefix}{tool}"), read(arguments)))
            .collect();
        let until = Instant::now() + START;
        while let Some(why) = work(&honest, &tools, Duration::ZERO).await.first() {
            assert!(Instant::now() < until, "{prefix}* is not ready: {why}");
            sleep(Duration::from_millis(50)).await;
        }
        for (tool, arguments) in *fails {
            let (name, arguments) = (format!("{prefix}{tool}"), read(arguments));
            let what = format!("{form:?} beside {name} {arguments}");
            let attack = |hostile: Hostile| async move {
                hostile.call_again(&name, &arguments, PAUSE).await;
            };
            let attacking = Attack::begin(attack, Hostile::new(server.url(), &callers.hostile));
            let failed = work(&honest, &tools, TIME).await;
            attacking.end().await;
            assert!(
                failed.is_empty(),
                "{what}: {} failed: {:#?}",
                failed.len(),
                failed.first()
            );
        }
    }
    // Each crash also ends calls of the honest principal, which Shoal repeats.
    let attack = |hostile: Hostile| async move {
        hostile.call_again("crash", &json!({}), PAUSE).await;
    };
    let attacking = Attack::begin(attack, Hostile::new(server.url(), &callers.hostile));
    let evaluate = vec![("evaluate".to_owned(), json!({"expression": {"value": 1}}))];
    let four = join_all((0..4).map(|_| work(&honest, &evaluate, 2 * TIME)));
    let failed: Vec<String> = four.await.into_iter().flatten().collect();
    attacking.end().await;
    assert!(
        failed.is_empty(),
        "{form:?} beside crashes: {} failed: {:#?}",
        failed.len(),
        failed.first()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process() {
    others_calls_succeed(Form::OneProcess).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster() {
    others_calls_succeed(Form::Cluster).await;
}
