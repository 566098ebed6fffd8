use nix::sys::signal::Signal;

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
