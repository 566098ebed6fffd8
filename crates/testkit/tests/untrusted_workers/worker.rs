use shoal_testkit::admin::Admin;
use shoal_testkit::clock::WrongClock;
use shoal_testkit::cluster::{Cluster, Member};
use shoal_testkit::directory::Directory;
use shoal_testkit::process::{Launch, Process, SOON};
use shoal_testkit::programs;

use crate::Papers;
use crate::node::calls_of;

const TEN_YEARS: i64 = 10 * 365 * 24 * 3600;
const BAD_SETTING: i32 = 2;

pub(crate) struct Stranger {
    process: Process,
    admin: Admin,
    _directory: Directory,
}

impl Stranger {
    pub(crate) async fn start(
        cluster: &Cluster,
        settings: &[(String, String)],
        is_late: bool,
    ) -> Self {
        let directory = Directory::create("stranger").unwrap();
        let mut launch = launch(cluster, settings, &directory);
        if is_late {
            for (name, value) in WrongClock::find().unwrap().variables(-TEN_YEARS) {
                launch = launch.variable(name, &value);
            }
        }
        let process = Process::start(&launch).unwrap();
        let admin = process.announced("shoal: admin on ").await.unwrap();
        Self {
            process,
            admin: Admin::at(&admin).unwrap(),
            _directory: directory,
        }
    }

    pub(crate) async fn calls(&self) -> f64 {
        calls_of(&self.admin).await
    }

    pub(crate) async fn end(self) {
        self.process.end(SOON).await;
    }
}

pub(crate) async fn does_not_start(cluster: &Cluster, name: &str, settings: &[(String, String)]) {
    let directory = Directory::create("stranger").unwrap();
    let process = Process::start(&launch(cluster, settings, &directory)).unwrap();
    let status = process.exit(SOON).await.unwrap();
    let said = process.tail();
    assert_eq!(status.code(), Some(BAD_SETTING), "{said}");
    crate::row(name, said.lines().last().unwrap_or_default());
}

pub(crate) fn without_certificate(papers: &Papers) -> Vec<(String, String)> {
    let all = papers.node.settings().into_iter();
    all.filter(|(name, _)| name.ends_with("authority"))
        .collect()
}

fn launch(cluster: &Cluster, settings: &[(String, String)], directory: &Directory) -> Launch {
    let nodes = cluster.members().iter().filter_map(Member::dialled_at);
    let nodes: Vec<String> = nodes.map(|address| address.to_string()).collect();
    let mut launch = Launch::new(
        "stranger",
        programs::shoal().unwrap(),
        directory.file("log"),
    )
    .arguments(["serve", "--roles", "worker", "--admin", "127.0.0.1:0"])
    .arguments(["--join", &nodes.join(",")]);
    for (name, value) in settings {
        let variable = format!("SHOAL_{}", name.to_uppercase().replace('.', "__"));
        launch = launch.variable(&variable, value);
    }
    launch.arguments(["--demo"])
}
