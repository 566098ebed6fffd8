use std::time::Duration;

use shoal_testkit::cluster::{Cluster, Member, Tools};
use shoal_testkit::directory::Directory;
use tokio::time::{Instant, sleep};

use crate::expression::{asked, without_zero};
use crate::files::{Query, deploy, queries};
use crate::prometheus::{Prometheus, path, promtool};
use crate::traffic;

const PATIENCE: Duration = Duration::from_secs(90);

/// The value of Grafana's `$__rate_interval` at this scrape interval.
const RATE_INTERVAL: &str = "1m";

/// Parts of panels' expressions, each with the reason why such a panel may show no data or only 0
/// here.
const QUIET: &[(&str, &str)] = &[
    (
        "shoal_node_ready{instance=~\"$node\"} == 0",
        "every node that can be scraped is ready",
    ),
    (
        "error_type=~\"-32603|50002|503..\"",
        "no request failed by Shoal's fault, or none has to",
    ),
    ("shoal_auth_attempts", "nobody is asked who he is"),
    ("shoal_quota_", "there are no quotas"),
    ("shoal_audit_", "there is no audit trail"),
    ("shoal_discovery_", "there is no controller"),
    (
        "shoal_clock_skew",
        "a link that is always busy measures nothing",
    ),
    ("shoal_pool_sheds", "there is room for every call"),
    ("shoal_pool_retries", "no attempt has to fail"),
    ("shoal_pool_queue_age", "no call has to wait"),
    ("shoal_pool_circuit_opened", "no worker fails"),
    ("shoal_worker_refused", "workers have room for every call"),
    ("shoal_state!=\"closed\"", "no worker fails"),
    ("shoal_outcome!=", "no write has to fail"),
    (
        "shoal_outcome=~\"unavailable|timeout|full\"",
        "no operation has to fail",
    ),
];

/// Expressions that the traffic must make true.
const MOVED: &[&str] = &[
    "sum(mcp_server_operation_duration_seconds_count{gen_ai_tool_name=\"ask\"}) > 0",
    "sum(mcp_server_operation_duration_seconds_count{error_type!=\"\"}) > 0",
    "sum(shoal_http_io_bytes_total{shoal_direction=\"in\",shoal_kind=\"plain\"}) > 0",
    "sum(shoal_http_io_bytes_total{shoal_direction=\"out\",shoal_kind=\"sse\"}) > 0",
    "sum(shoal_http_events_total) > 0",
    "sum(shoal_http_refused_total{shoal_reason=\"session_gone\"}) > 0",
    "sum(shoal_session_created_total) > 0",
    "sum(shoal_session_ended_total{shoal_reason=\"deleted\"}) > 0",
    "sum(shoal_session_claims_total{shoal_reason=~\"taken_over|evidence\",shoal_outcome=\"won\"}) > 0",
    "sum(shoal_session_takeover_duration_seconds_count{shoal_outcome=\"done\"}) > 0",
    "sum(shoal_stream_resumes_total) > 0",
    "sum(shoal_event_log_appended_total) > 0",
    "sum(shoal_journal_attaches_total{shoal_outcome=\"attached\"}) > 0",
    "sum(shoal_route_reattached_total) > 0",
    "sum(shoal_rpc_connects_total) > 0",
    "sum(shoal_rpc_disconnects_total) > 0",
    "sum(shoal_rpc_frames_total) > 0",
    "sum(shoal_rpc_io_bytes_total) > 0",
    "count(up{job=\"shoal\"} == 0) == 1",
];

fn substituted(expr: &str) -> String {
    expr.replace("$__rate_interval", RATE_INTERVAL)
        .replace("$node", ".*")
}

#[test]
fn alerts_pass_promtool() {
    promtool(&["check", "rules", path(&deploy("alerts.yaml"))], "").unwrap();
    promtool(&["check", "config", path(&deploy("prometheus.yml"))], "").unwrap();
    promtool(&["test", "rules", path(&deploy("alerts.test.yaml"))], "").unwrap();
}

#[tokio::test]
async fn every_panel_of_a_living_cluster_shows_something() {
    let directory = Directory::create("prometheus").unwrap();
    let cluster = Cluster::builder()
        .edges(2)
        .sessions(2)
        .workers(2)
        .lease(Duration::from_secs(3))
        .tools(Tools::Chaos)
        .tls()
        .start()
        .await
        .unwrap();
    let prometheus = Prometheus::start(&cluster, &directory).await.unwrap();
    let clients = traffic::start(cluster.url()).unwrap();
    let busy = "topk(1, shoal_journal_running > 0)";
    until(&prometheus, &["count(up{job=\"shoal\"} == 1) == 6", busy]).await;
    assert_eq!(active(&prometheus, "ShoalNodeDown").await, "inactive");
    for member in cluster.members() {
        check_page(member).await;
    }

    let carrier = prometheus.instance(busy).await.unwrap();
    let carries = |member: &&&Member| member.admin().address() == carrier;
    let sessions = cluster.sessions();
    sessions.iter().find(carries).unwrap().kill().await.unwrap();
    all_show(&prometheus, &queries()).await;
    until(&prometheus, MOVED).await;

    rules_are_evaluated(&prometheus).await;
    assert_ne!(active(&prometheus, "ShoalNodeDown").await, "inactive");
    drop(clients);
    cluster.end().await;
}

async fn all_show(prometheus: &Prometheus, queries: &[Query]) {
    let mut missing: Vec<(&Query, String)> = Vec::new();
    for query in queries {
        let shown = substituted(&query.expr);
        let bare = without_zero(&shown).to_owned();
        let is_quiet = QUIET.iter().any(|(part, _)| query.expr.contains(part));
        missing.push((query, if is_quiet { shown } else { bare }));
    }
    let deadline = Instant::now() + PATIENCE;
    while !missing.is_empty() {
        let mut still = Vec::new();
        for (query, expr) in missing {
            if prometheus.numbers(&expr).await.unwrap().is_empty() {
                still.push((query, expr));
            }
        }
        let names: Vec<_> = still
            .iter()
            .map(|(query, expr)| (&query.at, expr))
            .collect();
        assert!(
            names.is_empty() || Instant::now() < deadline,
            "nothing came for {names:#?}"
        );
        missing = still;
        sleep(Duration::from_millis(500)).await;
    }
}

async fn there(prometheus: &Prometheus, expr: &str) -> String {
    let mut there = String::new();
    for (name, _) in asked(expr).metrics {
        let data = prometheus.get("query", &[("query", &name)]).await.unwrap();
        there += &data.to_string();
    }
    there
}

async fn until(prometheus: &Prometheus, all: &[&str]) {
    let deadline = Instant::now() + PATIENCE;
    for expr in all {
        while prometheus.numbers(expr).await.unwrap().is_empty() {
            if Instant::now() > deadline {
                panic!(
                    "{expr} did not come true: {}",
                    there(prometheus, expr).await
                );
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
}

async fn check_page(member: &Member) {
    let url = format!("http://{}/metrics", member.admin().address());
    let page = reqwest::get(url).await.unwrap().text().await.unwrap();
    assert!(page.contains("target_info"), "{}: {page}", member.name());
    promtool(&["check", "metrics"], &page).unwrap();
}

async fn rules_are_evaluated(prometheus: &Prometheus) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let rules = prometheus.get("rules", &[]).await.unwrap();
        let groups = rules["groups"].as_array().unwrap();
        let rules = groups.iter().flat_map(|it| it["rules"].as_array().unwrap());
        let rules: Vec<_> = rules.collect();
        assert_eq!(rules.len(), crate::files::rules().len());
        for rule in &rules {
            assert_ne!(rule["health"], "err", "{rule}");
        }
        let waits = rules.iter().find(|rule| rule["health"] != "ok");
        let Some(waits) = waits else { return };
        assert!(Instant::now() < deadline, "never evaluated: {waits}");
        sleep(Duration::from_millis(500)).await;
    }
}

async fn active(prometheus: &Prometheus, alert: &str) -> String {
    let rules = prometheus.get("rules", &[]).await.unwrap();
    let groups = rules["groups"].as_array().unwrap();
    let mut rules = groups.iter().flat_map(|it| it["rules"].as_array().unwrap());
    let rule = rules.find(|rule| rule["name"] == alert).unwrap();
    rule["state"].as_str().unwrap().to_owned()
}
