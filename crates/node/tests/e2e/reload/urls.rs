//! Tests changes of a pool's URLs while calls run.

use std::net::TcpListener;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::load::under_load;
use super::setting::{ConfigFile, Seen, until};
use crate::process::{SHARED, Server};
use crate::serve::FIXTURE;

struct Upstream {
    server: Server,
    process: String,
}

impl Upstream {
    async fn start() -> Self {
        let server = Server::start_with(&["--", "python3", "-u", FIXTURE], &[SHARED]).await;
        let seen = Seen::of(&server).await;
        let process = seen.call("process", "").await;
        seen.session.end().await;
        Self { server, process }
    }

    async fn is_in_use(&self) -> bool {
        let status = self.server.status().await;
        let count = |name: &str| status["sessions"][name].as_u64().unwrap();
        count("live") + count("passive") > 0
    }
}

fn pool(servers: &[Upstream]) -> String {
    let urls: Vec<&str> = servers.iter().map(|it| &*it.server.mcp).collect();
    pool_at(&urls)
}

fn pool_at(urls: &[&str]) -> String {
    format!(
        "[reload]\nsessions = '100ms'\n[pools.remote]\nprefix = 'remote_'\nbackend = {{ http = {{ urls = {urls:?} }} }}\n"
    )
}

#[tokio::test]
async fn servers_behind_urls_come_and_go_and_no_client_notices() {
    let mut servers = Vec::new();
    for _ in 0..4 {
        servers.push(Upstream::start().await);
    }
    let config = ConfigFile::new(&pool(&servers[..2]));
    let front = super::serve(&config).await;
    under_load(&front.mcp, &["remote_shout"], async || {
        for now in [0..3, 1..3, 3..4] {
            config.write(&pool(&servers[now.clone()]));
            front.signal(Signal::SIGHUP);
            for (at, server) in servers.iter().enumerate() {
                until(async || server.is_in_use().await == now.contains(&at)).await;
            }
        }
        for mut gone in servers.drain(..3) {
            gone.server.signal(Signal::SIGKILL);
            gone.server.exit_code().await;
        }
    })
    .await;
    let seen = Seen::of(&front).await;
    assert_eq!(seen.call("remote_process", "").await, servers[0].process);
}

#[tokio::test]
async fn a_server_that_is_slow_to_start_takes_no_worker_that_takes_calls() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}/mcp", silent.local_addr().unwrap());
    let (before, after) = (Upstream::start().await, Upstream::start().await);
    let config = ConfigFile::new(&pool_at(&[&before.server.mcp]));
    let front = super::serve(&config).await;
    under_load(&front.mcp, &["remote_shout"], async || {
        config.write(&pool_at(&[&silent, &after.server.mcp]));
        front.signal(Signal::SIGHUP);
        until(async || workers(&front).await.len() == 2).await;
    })
    .await;
    let ready: Vec<_> = workers(&front)
        .await
        .into_iter()
        .map(|worker| worker["ready"].as_bool().unwrap())
        .collect();
    assert_eq!(ready, [true, false]);
    let seen = Seen::of(&front).await;
    assert_eq!(seen.call("remote_process", "").await, after.process);
}

/// Oldest first.
async fn workers(front: &Server) -> Vec<Value> {
    let status = front.status().await;
    let mut workers = status["pools"][0]["workers"].as_array().unwrap().clone();
    workers.sort_by_key(|worker| worker["id"].to_string().contains("remote.1@"));
    workers
}
