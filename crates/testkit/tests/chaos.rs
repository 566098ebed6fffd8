//! The binary `chaos` runs longer and with more clients.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

use std::time::Duration;

use shoal_testkit::chaos::{Deed, Fault, Options, run};
use tokio::sync::Mutex;

/// Clusters that share the CPU could lose leases.
static ALONE: Mutex<()> = Mutex::const_new(());

/// Kinds of faults that are tested with tasks. `chaos --tasks` covers all kinds.
const KILLS: [Fault; 3] = [Fault::Edge, Fault::Session, Fault::Worker];

async fn survives(fault: Fault) {
    let _alone = ALONE.lock().await;
    let options = Options {
        fault,
        seed: 7,
        time: Duration::from_secs(6),
        peace: Duration::from_secs(1),
        sessions: 20,
        modern: 8,
        tasks: if KILLS.contains(&fault) { 8 } else { 0 },
        thinking: Duration::from_millis(800),
        ..Options::default()
    };
    let report = run(&options).await.unwrap();
    assert!(report.is_clean(), "{report}");
    assert!(report.verdict.counts.results > 0, "{report}");
    if KILLS.contains(&fault) {
        assert!(report.verdict.counts.tasks > 0, "{report}");
    }
    assert!(!report.injected.is_empty(), "{report}");
    let cuts = [
        Fault::NoSessionNodes,
        Fault::CutEdgeSession,
        Fault::CutSessionWorker,
        Fault::LateStarts,
        Fault::Resets,
        Fault::CutRedis,
        Fault::OneWay,
        Fault::Slow,
    ];
    if fault == Fault::RefusingWorker {
        let refused = |deed: &Deed| deed.what == Deed::REFUSED;
        let mut injected = report.injected.iter();
        let shows = injected.any(|injected| injected.deeds.iter().any(refused));
        assert!(shows, "nothing was refused: {report}");
    }
    if fault == Fault::DrainingEdges {
        let refused = report.verdict.counts.refused.get(&503);
        assert!(refused.is_some(), "nothing came too late: {report}");
    }
    if cuts.contains(&fault) {
        assert!(report.disturbed > 0, "nothing was cut: {report}");
    }
}

#[tokio::test]
async fn without_faults_every_call_has_its_result() {
    let _alone = ALONE.lock().await;
    let options = Options {
        time: Duration::from_secs(2),
        peace: Duration::from_millis(200),
        sessions: 20,
        modern: 8,
        tasks: 8,
        thinking: Duration::from_millis(300),
        one_process: true,
        ..Options::default()
    };
    let report = run(&options).await.unwrap();
    assert!(report.is_clean(), "{report}");
    let counts = &report.verdict.counts;
    assert_eq!(counts.calls, counts.results + counts.hung_up, "{report}");
    assert!(counts.hung_up > 0, "{report}");
    assert!(counts.resumes > 0, "{report}");
}

#[test]
fn the_documentation_lists_every_kind() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/testing.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (_, table) = text.split_once("\n| fault | kinds |\n").unwrap();
    let table = table.split("\n\n").next().unwrap();
    for fault in Fault::all() {
        let name = format!("`{}`", fault.name());
        assert!(table.contains(&name), "{name}");
    }
}

macro_rules! survives {
    ($($name:ident: $fault:ident,)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            survives(Fault::$fault).await;
        }
    )*};
}

survives! {
    killed_edges: Edge,
    killed_session_nodes: Session,
    killed_workers: Worker,
    two_roles_killed_at_once: TwoRoles,
    a_kill_each_second: Churn,
    paused_session_nodes: Pause,
    starts_that_are_late: LateStarts,
    session_nodes_paused_within_their_lease: ShortPause,
    paused_edges: PauseEdge,
    paused_workers: PauseWorker,
    a_paused_redis: PauseRedis,
    cuts_between_edges_and_sessions: CutEdgeSession,
    cuts_between_sessions_and_workers: CutSessionWorker,
    connections_that_are_reset: Resets,
    cuts_to_redis: CutRedis,
    holes_in_one_direction: OneWay,
    slow_connections: Slow,
    wrong_clocks: Clocks,
    members_without_file_descriptors: Descriptors,
    logs_that_nobody_reads: Stderr,
    workers_without_room: RefusingWorker,
    all_session_nodes_away_at_once: NoSessionNodes,
    sessions_used_again_at_once: Returning,
    websockets_without_ids: WithoutIds,
    a_restarted_redis: RedisRestart,
    lost_data: RedisWipe,
    a_redis_without_memory: FullRedis,
    a_redis_without_disk: FullDisk,
    failovers_by_sentinel: Sentinel,
    failovers_in_a_redis_cluster: RedisCluster,
    listeners_at_starting_edges: StartingEdges,
    calls_at_draining_edges: DrainingEdges,
    a_rollout: Rolling,
    a_bit_of_everything: Mixed,
}
