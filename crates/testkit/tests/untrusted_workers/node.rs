use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use shoal_testkit::admin::Admin;
use shoal_testkit::cluster::Member;
use shoal_testkit::process::tail;
use tokio::time::{Instant, sleep};

use crate::POOL;

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) address: SocketAddr,
    admin: Admin,
    log: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) worker: String,
    tools: u64,
}

impl Node {
    pub(crate) async fn of(member: &Member) -> Self {
        let status = member.admin().status().await.unwrap();
        Self {
            id: status["node"].as_str().unwrap().to_owned(),
            address: member.dialled_at().unwrap(),
            admin: member.admin().clone(),
            log: member.log().to_owned(),
        }
    }

    /// Returns the only worker that the node knows, which must be ready, and the number of tools of
    /// the only pool.
    pub(crate) async fn known(&self) -> Known {
        let status = self.admin.status().await.unwrap();
        let pools = status["pools"].as_array().unwrap();
        let [pool] = &pools[..] else {
            panic!("{status}");
        };
        let workers = pool["workers"].as_array().map(Vec::as_slice);
        let Some([worker]) = workers else {
            panic!("{status}");
        };
        assert_eq!(pool["name"], POOL);
        assert!(
            worker["reachable"] == true && worker["ready"] == true,
            "{status}"
        );
        Known {
            worker: worker["id"].as_str().unwrap().to_owned(),
            tools: pool["tools"].as_u64().unwrap(),
        }
    }

    pub(crate) fn log_length(&self) -> usize {
        std::fs::read(&self.log).unwrap().len()
    }

    pub(crate) async fn logs(&self, after: usize, why: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let log = std::fs::read(&self.log).unwrap();
            if String::from_utf8_lossy(&log[after..]).contains(why) {
                return;
            }
            assert!(Instant::now() < until, "no {why:?} in {}", tail(&self.log));
            sleep(Duration::from_millis(20)).await;
        }
    }
}

pub(crate) async fn calls_of(admin: &Admin) -> f64 {
    let metric = admin.metric("shoal_worker_call_duration_seconds_count", "{");
    metric.await.unwrap()
}
