use std::path::PathBuf;

use serde_json::{Value, json};

use crate::client::{Events, Session, meta, modern, post_modern, request, response};
use crate::process::{SOON, Server};
use crate::reload::setting::{ConfigFile, until};

pub(crate) const EXTENDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/extended.py");
const THINGS: &str = "example.com/things";

pub(crate) struct Setting {
    pub(crate) server: Server,
    record: PathBuf,
    _place: ConfigFile,
}

impl Setting {
    pub(crate) async fn start(era: &str) -> Self {
        Self::start_with(era, &[]).await
    }

    async fn start_with(era: &str, flags: &[&str]) -> Self {
        let place = ConfigFile::new("");
        let record = place.beside("record");
        let server = ["--", "python3", "-u", EXTENDED, "--era", era, "--record"];
        let arguments = [&server[..], &[record.to_str().unwrap()], flags].concat();
        Self {
            server: Server::start(&arguments).await,
            record,
            _place: place,
        }
    }

    pub(crate) async fn recorded(&self, line: &str) {
        let has = async || self.lines().iter().any(|it| it == line);
        until(has).await;
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.record).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

async fn ask(url: &str, method: &str, mut params: Value, capabilities: Value) -> Value {
    params["_meta"] = meta();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    let asked = request(1, method, params);
    response(post_modern(url, &asked).send().await.unwrap()).await
}

async fn is_declared(url: &str) {
    let declared = async || {
        let found = ask(url, "server/discover", json!({}), json!({})).await;
        found["result"]["capabilities"]["extensions"][THINGS].is_object()
    };
    until(declared).await;
}

async fn things(url: &str) -> [Value; 2] {
    is_declared(url).await;
    let session = Session::open(url).await;
    let asked = request(2, "things/list", json!({ "page": 7 }));
    let legacy = session.ask(&asked).await;
    let modern = ask(url, "things/list", json!({ "page": 7 }), json!({})).await;
    [legacy, modern]
}

#[tokio::test]
async fn a_servers_extension_is_called_by_clients_of_both_eras() {
    for (speaks, era) in [
        ("legacy", "legacy"),
        ("modern", "modern"),
        ("dual", "modern"),
    ] {
        let setting = Setting::start(speaks).await;
        is_declared(&setting.server.mcp).await;
        // Test a stdio server, and the same server behind another Shoal, which calls it over HTTP.
        let behind = Server::start(&[&setting.server.mcp]).await;
        for url in [&setting.server.mcp, &behind.mcp] {
            let [legacy, modern] = things(url).await;
            for said in [&legacy, &modern] {
                let said = &said["result"];
                assert_eq!(said["name"], "extended", "{speaks}: {said}");
                assert_eq!(said["params"]["page"], 7, "{speaks}: {said}");
                assert_eq!(said["era"], era, "{speaks}: {said}");
            }
            assert_eq!(modern["result"]["resultType"], "complete", "{modern}");
            assert!(legacy["result"].get("resultType").is_none(), "{legacy}");
            let unknown = ask(url, "things/none", json!({}), json!({})).await;
            assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
            let why = unknown["error"]["message"].as_str().unwrap();
            assert!(why.contains("extended does not know things/none"), "{why}");
        }
    }
}

#[tokio::test]
async fn a_method_that_nobody_can_have_is_unknown() {
    let server = Server::start(&["--demo"]).await;
    let session = Session::open(&server.mcp).await;
    let unknown = session.ask(&request(1, "things/list", json!({}))).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let asked = modern(1, "things/list", json!({}));
    let answer = post_modern(&server.mcp, &asked).send().await.unwrap();
    assert_eq!(answer.status(), 404);
    assert_eq!(response(answer).await["error"]["code"], -32601);
}

#[tokio::test]
async fn notifications_of_an_extension_reach_its_server() {
    for era in ["legacy", "modern"] {
        let setting = Setting::start(era).await;
        let behind = Server::start(&[&setting.server.mcp]).await;
        let session = Session::open(&behind.mcp).await;
        let tell = |who: &str| {
            let params = json!({ "who": who });
            json!({ "jsonrpc": "2.0", "method": "notifications/things/tell", "params": params })
        };
        let told = session.post(&tell("legacy")).send().await.unwrap();
        assert_eq!(told.status(), 202);
        let told = post_modern(&setting.server.mcp, &tell("modern"));
        let told = told.send().await.unwrap();
        assert_eq!(told.status(), 202);
        for who in ["legacy", "modern"] {
            let line = format!(r#"notifications/things/tell {{"who": "{who}"}}"#);
            setting.recorded(&line).await;
        }
    }
}

#[tokio::test]
async fn a_method_of_an_extension_is_cancelled_and_its_notifications_come() {
    let setting = Setting::start("legacy").await;
    let session = Session::open(&setting.server.mcp).await;
    let slow = session.post(&request(5, "things/slow", json!({})));
    let mut events = Events::of(slow.send().await.unwrap());
    let step = tokio::time::timeout(SOON, events.message()).await.unwrap();
    assert_eq!(step["method"], "notifications/things/step", "{step}");
    assert_eq!(step["params"], json!({ "step": 1 }));
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 5 } });
    session.post(&cancel).send().await.unwrap();
    setting.recorded("slow cancelled").await;
    let slow = post_modern(&setting.server.mcp, &modern(6, "things/slow", json!({})));
    let mut events = Events::of(slow.send().await.unwrap());
    assert_eq!(events.message().await["params"], json!({ "step": 1 }));
    drop(events);
    let stopped = |line: &&String| *line == "slow cancelled";
    until(async || setting.lines().iter().filter(stopped).count() == 2).await;
}

#[tokio::test]
async fn a_method_of_an_extension_never_runs_twice() {
    let setting = Setting::start("legacy").await;
    let session = Session::open(&setting.server.mcp).await;
    let lost = session.ask(&request(1, "things/crash", json!({}))).await;
    assert_eq!(lost["error"]["code"], 50_002, "{lost}");
    let lost = ask(&setting.server.mcp, "things/crash", json!({}), json!({})).await;
    let code = lost["error"]["code"].as_i64().unwrap();
    // The server may refuse the retry while its process restarts.
    let ran = setting.lines().iter().filter(|it| *it == "crash").count();
    assert!(
        matches!((code, ran), (50_002, 2) | (50_300 | 50_301, 1)),
        "{lost} {ran}"
    );
}

#[tokio::test]
async fn a_server_is_told_of_its_clients_extensions() {
    let apps = json!({ "extensions": { "io.modelcontextprotocol/ui": { "mimeTypes": ["a/b"] } } });
    let list = request(1, "things/list", json!({}));
    let isolated = async |isolation: &str| {
        let config = format!(
            "[pools.x]\nbackend = {{ stdio = {{ command = \"python3\", args = [\"-u\", {EXTENDED:?}], isolation = {isolation:?} }} }}"
        );
        let config = ConfigFile::new(&config);
        Server::start(&["--config", config.path()]).await
    };
    let server = isolated("session").await;
    let session = Session::open_with(&server.mcp, apps.clone()).await;
    let said = session.ask(&list).await;
    assert_eq!(said["result"]["client"], apps["extensions"], "{said}");
    let said = Session::open(&server.mcp).await.ask(&list).await;
    assert_eq!(said["result"]["client"], Value::Null, "{said}");
    let shared = isolated("shared").await;
    let said = Session::open(&shared.mcp).await.ask(&list).await;
    let told = &said["result"]["client"]["io.modelcontextprotocol/ui"]["mimeTypes"];
    assert_eq!(*told, json!(["text/html;profile=mcp-app"]), "{said}");
    let modern = Setting::start("modern").await;
    let said = ask(&modern.server.mcp, "things/list", json!({}), apps.clone()).await;
    assert_eq!(said["result"]["client"], apps["extensions"], "{said}");
}

#[tokio::test]
async fn of_several_pools_the_one_that_the_request_means_is_asked() {
    let pool = |name: &str, extension: &str| {
        format!(
            "[pools.{name}]\nprefix = \"{name}_\"\nbackend = {{ stdio = {{ command = \"python3\", args = [\"-u\", {EXTENDED:?}, \
             \"--name\", \"{name}\", \"--extension\", \"{extension}\"] }} }}\n"
        )
    };
    let pools = [
        pool("a", THINGS),
        pool("b", THINGS),
        pool("c", "example.com/other"),
    ]
    .concat();
    let pools = format!("{pools}[pools.a.methods]\ndeny = [\"things/slow\"]\n");
    let config = ConfigFile::new(&pools);
    let server = Server::start(&["--config", config.path()]).await;
    server.wait_for_readiness(200).await;
    let session = Session::open(&server.mcp).await;
    let named = async |method: &str, params: Value| {
        let said = session.ask(&request(1, method, params)).await;
        (
            said["result"]["name"].clone(),
            said["result"]["params"]["name"].clone(),
        )
    };
    // Shoal routes a call by the extension's name, by a resource or by a tool, and otherwise to the first
    // pool.
    assert_eq!(named("other/list", json!({})).await.0, "c");
    assert_eq!(
        named("things/list", json!({ "uri": "test://b" })).await.0,
        "b"
    );
    let (pool, tool) = named("things/list", json!({ "name": "b_job" })).await;
    assert_eq!((pool, tool), (json!("b"), json!("job")));
    assert_eq!(
        named("things/list", json!({ "uri": "test://c" })).await.0,
        "a"
    );
}

#[tokio::test]
async fn rules_allow_a_method_of_an_extension_only_by_its_name() {
    for (rule, allowed) in [
        ("", false),
        (
            "[[policy.rules]]\nname = \"m\"\neffect = \"allow\"\nmethods = [\"things/*\"]\n",
            true,
        ),
    ] {
        let config = ConfigFile::new(&format!(
            "[pools.x]\nbackend = {{ stdio = {{ command = \"python3\", args = [\"-u\", {EXTENDED:?}] }} }}\n\
             [[policy.rules]]\nname = \"all\"\neffect = \"allow\"\n{rule}"
        ));
        let server = Server::start(&["--config", config.path()]).await;
        let session = Session::open(&server.mcp).await;
        for said in [
            session.ask(&request(1, "things/list", json!({}))).await,
            ask(&server.mcp, "things/list", json!({}), json!({})).await,
        ] {
            match allowed {
                true => assert_eq!(said["result"]["name"], "extended", "{said}"),
                false => assert_eq!(said["error"]["code"], -32601, "{said}"),
            }
        }
    }
}
