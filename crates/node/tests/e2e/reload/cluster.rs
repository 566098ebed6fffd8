//! Tests reloads with the pools in another process than the edge.

use std::net::TcpListener;
use std::process::Stdio;

use nix::sys::signal::Signal;
use tokio::process::{Child, Command};

use super::load::under_load;
use super::setting::{ConfigFile, Seen, fixture, until};
use crate::process::{Server, shoal};

pub(crate) async fn redis() -> (Child, String) {
    let port = {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    };
    let child = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no"])
        .args(["--maxmemory-policy", "noeviction"])
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    until(async || {
        let connected = tokio::net::TcpStream::connect(("127.0.0.1", port));
        connected.await.is_ok()
    })
    .await;
    (child, format!("redis://127.0.0.1:{port}"))
}

async fn start(config: &ConfigFile, arguments: &[&str]) -> Server {
    let mut all = vec!["serve", "--admin", "127.0.0.1:0", "--config", config.path()];
    all.extend(arguments);
    Server::of(shoal(&all)).await
}

#[tokio::test]
async fn edges_and_workers_follow_their_file_and_no_client_notices() {
    let (_redis, store) = redis().await;
    let config = ConfigFile::new(&[fixture("same", ""), fixture("other", "")].concat());
    let any = "127.0.0.1:0";
    let listen = ["--listen", any, "--cluster-listen", any, "--store", &*store];
    let edge = [&["--roles", "edge,session"], &listen[..]].concat();
    let serve = ["serve", "--admin", any, "--config", config.path()];
    let mut command = shoal(&[&serve, &edge[..]].concat());
    // A node that is still learning would keep tools that have gone.
    command.env("SHOAL_CLUSTER__LEARNING", "0s");
    // The edge is not ready before the worker joins, so wait only for its addresses.
    let edge = Server::announced(command).await;
    let join = ["--roles", "worker", "--join", &*edge.cluster];
    let worker = start(&config, &join).await;
    edge.wait_for_readiness(200).await;
    let follow = || {
        for process in [&edge, &worker] {
            process.signal(Signal::SIGHUP);
        }
    };
    let seen = Seen::of(&edge).await;
    let pid = seen.call("same_process", "").await;
    let mut stream = seen.session.listen().await;
    under_load(&edge.mcp, &["same_shout", "other_shout"], async || {
        let form = fixture("other", "env = { FORM = 'two' }");
        config.write(&[fixture("same", ""), form.clone(), fixture("new", "")].concat());
        follow();
        seen.offers("new_shout", true).await;
        until(async || seen.call("other_variable", "FORM").await == "two").await;
        assert_eq!(seen.call("new_shout", "hello").await, "HELLO");

        let filtered =
            fixture("same", "").replace("prefix", "tools = { deny = ['grumble'] }\nprefix");
        config.write(&[filtered, form].concat());
        follow();
        seen.offers("same_grumble", false).await;
        seen.offers("new_shout", false).await;
        assert_eq!(seen.refusal("new_shout").await, -32602);
        assert_eq!(seen.call("other_variable", "FORM").await, "two");
    })
    .await;
    let told = stream.message().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(seen.call("same_process", "").await, pid);
    worker.wait_for_readiness(200).await;
}
