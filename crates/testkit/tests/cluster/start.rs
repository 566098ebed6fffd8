use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use shoal_testkit::directory::Directory;
use shoal_testkit::free_port;
use shoal_testkit::process::{Launch, Process, SOON};
use shoal_testkit::programs;
use shoal_testkit::redis::{Data, Redis};

use crate::client::within;

struct Starting {
    process: Process,
    admin: String,
    _directory: Directory,
}

impl Starting {
    fn with(redis: &Redis) -> Self {
        let directory = Directory::create("start").unwrap();
        let [admin, cluster] =
            [(); 2].map(|()| format!("127.0.0.1:{}", free_port::reserve().unwrap()));
        let log = directory.file("node.log");
        let launch = Launch::new("starting", programs::shoal().unwrap(), log)
            .arguments(["serve", "--roles", "session", "--admin", &admin])
            .arguments(["--cluster-listen", &cluster, "--store", &redis.url()])
            .variable("SHOAL_SHUTDOWN__BALANCER_DELAY", "0s");
        Self {
            process: Process::start(&launch).unwrap(),
            admin,
            _directory: directory,
        }
    }

    async fn waits_for(&mut self, what: &str) {
        let said = async {
            loop {
                assert!(self.process.is_running(), "{}", self.process.tail());
                let get = |path: &str| reqwest::get(format!("http://{}/{path}", self.admin));
                if let Ok(answer) = get("readyz").await {
                    assert_eq!(answer.status(), 503);
                    let said: Value = answer.json().await.unwrap();
                    if said["reasons"].to_string().contains(what) {
                        assert_eq!(get("livez").await.unwrap().status(), 200);
                        return;
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        within(said).await;
    }

    async fn serves(&mut self) {
        within(self.process.announced("shoal: admin on "))
            .await
            .unwrap();
        let answer = reqwest::get(format!("http://{}/status", self.admin));
        assert_eq!(answer.await.unwrap().status(), 200);
    }

    fn warnings(&self) -> usize {
        let log = self.process.tail();
        let about = |line: &&str| line.contains("WARN") && line.contains("Redis is");
        log.lines().filter(about).count()
    }
}

#[tokio::test]
async fn a_node_waits_for_a_redis_that_takes_no_writes() {
    let redis = Redis::start().await.unwrap();
    let needs = async |replicas: &str| {
        let set = ["CONFIG", "SET", "min-replicas-to-write", replicas];
        redis.command(&set).await.unwrap();
    };
    needs("1").await;
    let mut node = Starting::with(&redis);
    node.waits_for("NOREPLICAS").await;
    needs("0").await;
    node.serves().await;
    assert_eq!(node.warnings(), 1, "{}", node.process.tail());
}

#[tokio::test]
async fn a_node_waits_for_a_redis_that_is_a_replica() {
    let redis = Redis::start().await.unwrap();
    let follow = async |host: &str, port: &str| {
        redis.command(&["REPLICAOF", host, port]).await.unwrap();
    };
    follow("127.0.0.1", "1").await;
    let mut node = Starting::with(&redis);
    node.waits_for("not a master").await;
    follow("NO", "ONE").await;
    node.serves().await;
}

#[tokio::test]
async fn a_node_waits_for_a_redis_that_is_away() {
    let redis = Redis::start().await.unwrap();
    redis.kill().await.unwrap();
    let mut node = Starting::with(&redis);
    node.waits_for("Redis").await;
    // In this time the node makes many attempts, but it must warn only once.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(node.warnings(), 1, "{}", node.process.tail());
    redis.start_again(Data::Kept).await.unwrap();
    node.serves().await;
}

#[tokio::test]
async fn a_node_that_waits_for_redis_ends_when_it_is_told_to() {
    let redis = Redis::start().await.unwrap();
    redis.kill().await.unwrap();
    let mut node = Starting::with(&redis);
    node.waits_for("Redis").await;
    node.process.signal(Signal::SIGTERM).unwrap();
    let status = node.process.exit(SOON).await.unwrap();
    assert!(status.success(), "{status}");
}
