use std::fs;
use std::time::Duration;

use serde_json::Value;
use shoal_testkit::cluster::{Certificates, Cluster, Issued, Member};
use shoal_testkit::directory::Directory;
use shoal_testkit::free_port;
use shoal_testkit::process::{Launch, Process};
use shoal_testkit::programs;
use tokio::time::sleep;

use crate::client::{Client, within};
use crate::{small, start};

const DISTRUSTED: &str = "shoal_tls_distrusted";
const EXPIRY: &str = "shoal_tls_certificate_expiry_seconds";
const OF_2041: f64 = 2_240_611_200.0;

fn put(these: &Issued, over: &Issued) {
    for (this, over) in [
        (&these.authority, &over.authority),
        (&these.key, &over.key),
        (&these.certificate, &over.certificate),
    ] {
        fs::copy(this, over).unwrap();
    }
}

async fn readiness(admin: &str) -> (u16, Value) {
    let answer = reqwest::get(format!("http://{admin}/readyz")).await;
    let answer = answer.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn is_cut_off(admin: &str) -> String {
    within(async {
        loop {
            let (status, said) = readiness(admin).await;
            let reasons = said["reasons"].as_array().into_iter().flatten();
            let mut reasons = reasons.filter_map(Value::as_str);
            if let Some(why) = reasons.find(|why| why.starts_with("TLS keeps")) {
                assert_eq!(status, 503);
                return why.to_owned();
            }
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await
}

async fn all_are_ready(cluster: &Cluster) {
    for member in cluster.members() {
        let (status, said) = readiness(member.admin().address()).await;
        assert_eq!(status, 200, "{}: {said}", member.name());
    }
}

fn whole(cluster: &Cluster, directory: &Directory, files: &Issued) -> (Process, String) {
    let [admin, clients, others] =
        [(); 3].map(|()| format!("127.0.0.1:{}", free_port::reserve().unwrap()));
    let log = directory.file("whole.log");
    let mut launch = Launch::new("whole", programs::shoal().unwrap(), log)
        .arguments(["serve", "--roles", "edge,session,worker", "--demo"])
        .arguments(["--admin", &admin, "--listen", &clients])
        .arguments(["--cluster-listen", &others])
        .arguments(["--store", &cluster.redis().unwrap().url()])
        .variable("SHOAL_CLUSTER__TLS__REREAD", "100ms")
        .variable("SHOAL_NODE__LEASE", "2s");
    for (name, value) in files.settings() {
        let variable = format!("SHOAL_{}", name.to_uppercase().replace('.', "__"));
        launch = launch.variable(&variable, &value);
    }
    (Process::start(&launch).unwrap(), admin)
}

#[tokio::test]
async fn a_process_of_another_authority_is_not_ready_until_it_has_a_certificate_of_the_clusters() {
    let cluster = start(small().tls()).await;
    let directory = Directory::create("distrust").unwrap();
    let other = Certificates::create(&directory).unwrap().of_members();
    let (stranger, admin) = whole(&cluster, &directory, &other);
    within(stranger.announced("shoal: admin on "))
        .await
        .unwrap();
    let why = is_cut_off(&admin).await;
    assert!(
        why.contains("is not issued by the authority") && why.contains("cluster.tls"),
        "{why}"
    );
    let seen = reqwest::get(format!("http://{admin}/metrics")).await;
    let seen = seen.unwrap().text().await.unwrap();
    let seen = seen.lines().find(|line| line.starts_with(DISTRUSTED));
    assert!(seen.is_some_and(|line| !line.ends_with(" 0")), "{seen:?}");
    all_are_ready(&cluster).await;
    Client::open(cluster.url()).await.echo_patiently(1).await;

    put(&cluster.certificates().unwrap().of_members(), &other);
    within(async {
        while readiness(&admin).await.0 != 200 {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    drop(stranger);
}

#[tokio::test]
async fn a_node_that_the_others_trust_no_more_is_not_ready_although_it_was() {
    let directory = Directory::create("distrust").unwrap();
    let cluster = start(small().tls().setting("cluster.tls.reread", "100ms")).await;
    let common = cluster.certificates().unwrap().of_members();
    let own = Certificates::create(&directory).unwrap().of_members();
    put(&common, &own);
    let edge = cluster.edges()[0];
    for (name, value) in own.settings() {
        edge.set(&name, &value);
    }
    again(edge).await;
    edge.wait_until_ready(Duration::from_secs(30))
        .await
        .unwrap();
    // Opening a session makes the edge connect to the other members.
    Client::open(edge.mcp_url().unwrap()).await;

    let elsewhere = Directory::create("distrust").unwrap();
    let wrong = Certificates::create(&elsewhere).unwrap();
    wrong.renew(1).unwrap();
    put(&wrong.of_members(), &own);
    within(async {
        let taken = || edge.admin().metric(EXPIRY, "");
        while taken().await.unwrap() != OF_2041 {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let admin = edge.admin().address();
    let (status, said) = readiness(admin).await;
    assert_eq!(status, 200, "open links are enough: {said}");
    // The restarted members dial the edge, which rejects them.
    for member in cluster.sessions().into_iter().chain(cluster.workers()) {
        again(member).await;
    }
    let why = is_cut_off(admin).await;
    assert!(why.contains("certificate"), "{why}");
    for member in cluster
        .members()
        .iter()
        .filter(|it| it.name() != edge.name())
    {
        let ready = member.wait_until_ready(Duration::from_secs(30)).await;
        ready.unwrap();
    }
}

async fn again(member: &Member) {
    member.kill().await.unwrap();
    member.start_again().await.unwrap();
}
