#[path = "reload/cluster.rs"]
mod cluster;
#[path = "reload/load.rs"]
mod load;
#[path = "reload/refused.rs"]
mod refused;
#[path = "reload/removed.rs"]
mod removed;
#[path = "reload/setting.rs"]
pub(crate) mod setting;
#[path = "reload/urls.rs"]
mod urls;

pub(crate) use self::cluster::redis;

use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::json;

use self::load::under_load;
use self::setting::{ConfigFile, Seen, fixture, until};
use crate::client::{Session, call, initialize, initialized, request, text};
use crate::process::{Bridge, Server, shoal};

async fn serve(config: &ConfigFile) -> Server {
    Server::start(&["--config", config.path()]).await
}

#[tokio::test]
async fn pools_come_change_and_go_and_no_client_notices() {
    let config = ConfigFile::new(&[fixture("same", ""), fixture("other", "")].concat());
    let server = serve(&config).await;
    let seen = Seen::of(&server).await;
    let pid = seen.call("same_process", "").await;
    let mut stream = seen.session.listen().await;
    under_load(&server.mcp, &["same_shout", "other_shout"], async || {
        let all = [
            fixture("same", ""),
            fixture("other", ""),
            fixture("new", ""),
        ];
        config.write(&all.concat());
        server.signal(Signal::SIGHUP);
        seen.offers("new_shout", true).await;
        assert_eq!(seen.call("new_shout", "hello").await, "HELLO");

        let form = |form: &str| format!("env = {{ FORM = '{form}' }}");
        let changed = fixture("other", &form("two"));
        config.write(&[fixture("same", ""), changed.clone(), fixture("new", "")].concat());
        server.signal(Signal::SIGHUP);
        until(async || seen.call("other_variable", "FORM").await == "two").await;

        let filtered =
            fixture("same", "").replace("prefix", "tools = { deny = ['grumble'] }\nprefix");
        config.write(&[filtered, changed, fixture("new", "")].concat());
        server.signal(Signal::SIGHUP);
        seen.offers("same_grumble", false).await;
        assert_eq!(seen.call("other_variable", "FORM").await, "two");

        config.write(&[fixture("same", ""), fixture("other", &form("three"))].concat());
        server.signal(Signal::SIGHUP);
        seen.offers("new_shout", false).await;
        assert_eq!(seen.refusal("new_shout").await, -32602);
        seen.offers("same_grumble", true).await;
        until(async || seen.call("other_variable", "FORM").await == "three").await;
    })
    .await;
    let told = stream.message().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(seen.call("same_process", "").await, pid);
    let status = server.status().await;
    assert_eq!(status["configuration"]["waiting"], json!([]));
    assert_eq!(status["configuration"]["file"], config.path());
}

#[tokio::test]
async fn a_call_that_runs_ends_as_it_began() {
    let config = ConfigFile::new(&[fixture("same", ""), fixture("slow", "")].concat());
    let server = serve(&config).await;
    let seen = Seen::of(&server).await;
    let old = seen.call("slow_process", "").await;
    let ask = |file: &Path| {
        let (mcp, file) = (server.mcp.clone(), file.to_str().unwrap().to_owned());
        tokio::spawn(async move {
            let session = Session::open(&mcp).await;
            let call = call(1, "slow_wait", json!({ "text": file }));
            session.ask(&call).await
        })
    };
    let runs_one = async || until(async || runs(&server, "slow").await == 1).await;
    let [first, second] = [config.beside("first"), config.beside("second")];
    let asked = ask(&first);
    runs_one().await;
    let changed = fixture("slow", "env = { FORM = 'two' }");
    config.write(&[fixture("same", ""), changed].concat());
    server.signal(Signal::SIGHUP);
    // From this line of the log on, new calls go to the new process. The first call still runs in the former one.
    until(async || server.log().contains("has taken over")).await;
    let new = seen.call("slow_process", "").await;
    assert_ne!(new, old);
    std::fs::write(&first, "").unwrap();
    assert_eq!(text(&asked.await.unwrap()), old);
    until(async || runs(&server, "slow").await == 0).await;

    let asked = ask(&second);
    runs_one().await;
    config.write(&fixture("same", ""));
    server.signal(Signal::SIGHUP);
    seen.offers("slow_shout", false).await;
    server.wait_for_readiness(200).await;
    std::fs::write(&second, "").unwrap();
    assert_eq!(text(&asked.await.unwrap()), new);
    for process in [old, new] {
        until(async || !Path::new(&format!("/proc/{process}")).exists()).await;
    }
    until(async || server.status().await["pools"].as_array().unwrap().len() == 1).await;
}

/// Counts running calls over all versions of the pool.
async fn runs(server: &Server, pool: &str) -> u64 {
    let status = server.status().await;
    let pools = status["pools"].as_array().unwrap().clone();
    let named = pools.iter().find(|named| named["name"] == pool);
    let workers = named.and_then(|named| named["workers"].as_array().cloned());
    let running = workers.unwrap_or_default();
    running
        .iter()
        .filter_map(|worker| worker["running"].as_u64())
        .sum()
}

#[tokio::test]
async fn a_session_keeps_a_process_of_its_own_until_it_ends() {
    let own = "isolation = 'session'";
    let config = ConfigFile::new(&fixture("own", own));
    let server = serve(&config).await;
    let seen = Seen::of(&server).await;
    let pid = seen.call("own_process", "").await;
    config.write(&fixture("own", &format!("{own}, env = {{ FORM = 'two' }}")));
    server.signal(Signal::SIGHUP);
    until(async || {
        let later = Seen::of(&server).await;
        later.call("own_variable", "FORM").await == "two"
    })
    .await;
    assert_eq!(seen.call("own_process", "").await, pid);
    assert_eq!(seen.call("own_variable", "FORM").await, "None");
    seen.session.end().await;
    until(async || !Path::new(&format!("/proc/{pid}")).exists()).await;
}

#[tokio::test]
async fn a_file_that_cannot_be_used_changes_nothing() {
    let config = ConfigFile::new(&fixture("same", ""));
    let server = serve(&config).await;
    let seen = Seen::of(&server).await;
    let pid = seen.call("same_process", "").await;
    let refused = async || server.status().await["configuration"]["refused"].clone();
    assert!(refused().await.is_null());
    config.write(&fixture("same", "comand = 'x'"));
    for _ in 0..2 {
        let before = reloads(&server, "refused").await;
        server.signal(Signal::SIGHUP);
        until(async || reloads(&server, "refused").await > before).await;
    }
    let said = refused().await.as_str().unwrap().to_owned();
    assert!(said.contains("pools.same.backend.stdio"), "{said}");
    assert_eq!(server.log().matches("stays as it was").count(), 1);
    let mut check = shoal(&["config", "check", "--config", config.path()]);
    let output = check.output().await.unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains(&said));
    assert_eq!(seen.call("same_process", "").await, pid);

    let later = format!("{}[calls]\ntimeout = '7s'\n", fixture("same", ""));
    config.write(&later);
    server.signal(Signal::SIGHUP);
    until(async || refused().await.is_null()).await;
    let status = server.status().await;
    assert_eq!(
        status["configuration"]["at_next_start"],
        json!(["calls.timeout"])
    );
    assert!(
        server.log().contains("take effect at the next start"),
        "{}",
        server.log()
    );
    assert_eq!(seen.call("same_process", "").await, pid);
}

async fn reloads(server: &Server, outcome: &str) -> u64 {
    let metrics = reqwest::get(format!("{}/metrics", server.admin)).await;
    let metrics = metrics.unwrap().text().await.unwrap();
    let label = format!("shoal_outcome=\"{outcome}\"");
    let mut lines = metrics.lines();
    let line = lines.find(|line| line.starts_with("shoal_config_reloads") && line.contains(&label));
    let count = line.and_then(|line| line.rsplit(' ').next());
    count.map_or(0, |count| count.parse::<f64>().unwrap() as u64)
}

#[tokio::test]
async fn a_pool_goes_on_until_its_new_form_is_ready_also_when_the_process_ends_before() {
    let config = ConfigFile::new(&fixture("same", ""));
    let mut server = serve(&config).await;
    let seen = Seen::of(&server).await;
    let pid = seen.call("same_process", "").await;
    config.write("[pools.same]\nbackend = { stdio = { command = 'sleep', args = ['98765'] } }\n");
    server.signal(Signal::SIGHUP);
    let waiting = async || server.status().await["configuration"]["waiting"].clone();
    until(async || waiting().await.as_array().unwrap().len() == 1).await;
    assert_eq!(seen.call("same_process", "").await, pid);
    assert_eq!(server.readiness().await.0, 200);
    config.write(&fixture("same", ""));
    server.signal(Signal::SIGHUP);
    until(async || waiting().await == json!([])).await;
    assert_eq!(seen.call("same_process", "").await, pid);
    config.write("[pools.same]\nbackend = { stdio = { command = 'sleep', args = ['98765'] } }\n");
    server.signal(Signal::SIGHUP);
    until(async || waiting().await.as_array().unwrap().len() == 1).await;
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0, "{}", server.log());
}

#[tokio::test]
async fn a_watched_file_needs_no_signal() {
    let watch = "[reload]\nwatch = true\nwatch_every = '20ms'\n";
    let config = ConfigFile::new(&format!("{}{watch}", fixture("one", "")));
    let server = serve(&config).await;
    let seen = Seen::of(&server).await;
    config.write(&format!(
        "{}{}{watch}",
        fixture("one", ""),
        fixture("two", "")
    ));
    seen.offers("two_shout", true).await;
}

/// Opening the pipe would block, and Shoal would not read later files.
#[tokio::test]
async fn a_pipe_in_the_files_place_is_refused_and_the_file_after_it_is_read() {
    let watch = "[reload]\nwatch = true\nwatch_every = '20ms'\n";
    let config = ConfigFile::new(&format!("{}{watch}", fixture("one", "")));
    let server = serve(&config).await;
    let seen = Seen::of(&server).await;
    std::fs::remove_file(config.path()).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(config.path())
        .status();
    assert!(made.unwrap().success());
    let told = "cannot be read: it is no regular file";
    until(async || server.log().contains(told)).await;
    server.signal(Signal::SIGHUP);
    std::fs::remove_file(config.path()).unwrap();
    config.write(&format!(
        "{}{}{watch}",
        fixture("one", ""),
        fixture("two", "")
    ));
    seen.offers("two_shout", true).await;
    assert_eq!(server.log().matches(told).count(), 1, "{}", server.log());
}

#[tokio::test]
async fn without_a_file_a_hang_up_is_told_and_nothing_else() {
    let mut server = Server::start(&["--demo"]).await;
    server.signal(Signal::SIGHUP);
    until(async || server.log().contains("no configuration file to read again")).await;
    let seen = Seen::of(&server).await;
    assert_eq!(seen.call("echo", "here").await, "here");
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code().await, 0);
}

#[tokio::test]
async fn a_bridge_follows_its_file_too() {
    let config = ConfigFile::new(&fixture("one", ""));
    let mut bridge = Bridge::start(&["--config", config.path()]);
    bridge.send(initialize(0, "2025-11-25")).await;
    bridge.response(0).await;
    bridge.send(initialized()).await;
    config.write(&[fixture("one", ""), fixture("two", "")].concat());
    bridge.signal(Signal::SIGHUP);
    bridge.of_method("notifications/tools/list_changed").await;
    bridge.send(request(1, "tools/list", json!({}))).await;
    let list = bridge.response(1).await;
    assert!(list.to_string().contains("two_shout"), "{list}");
    bridge.close();
    assert_eq!(bridge.end().await.0, 0);
}
