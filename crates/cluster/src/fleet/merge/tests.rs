//! What several nodes say becomes one picture.

use shoal_ports::{
    InspectError, Listing, NodeId, NodeInfo, NodeReport, Outcomes, PoolReport, Step, WorkerReport,
};

use super::super::history::History;
use super::{Answer, gathered, overview};

fn info(id: &str) -> NodeInfo {
    NodeInfo {
        id: NodeId::new(id),
        address: "127.0.0.1:1".to_owned(),
        session: true,
        edge: false,
        draining: false,
        starting: false,
        pools: Vec::new(),
        sessions: 0,
        in_flight: 0,
        version: "0.1.0".to_owned(),
    }
}

fn report(at: u64, running: usize) -> NodeReport {
    let worker = WorkerReport {
        id: "p@w".to_owned(),
        ready: true,
        reachable: true,
        circuit_open: false,
        running,
        queued: 0,
        capacity: 4,
        detail: None,
    };
    let pool = PoolReport {
        name: "p".to_owned(),
        ready: true,
        tools: 1,
        prompts: 0,
        resources: 0,
        workers: vec![worker],
    };
    let outcomes = Outcomes {
        ok: 2,
        ..Outcomes::default()
    };
    NodeReport {
        roles: vec!["session".to_owned()],
        pools: vec![pool],
        steps: vec![Step {
            at,
            outcomes,
            latency: vec![2],
            ..Step::default()
        }],
        ..NodeReport::default()
    }
}

fn answer<T>(node: &str, said: Result<T, InspectError>) -> Answer<T> {
    Answer {
        node: NodeId::new(node),
        said,
    }
}

#[test]
fn one_worker_that_two_nodes_see_is_one() {
    let listed = ["a", "b", "c"].map(|id| (info(id), true)).to_vec();
    let answers = vec![
        answer("b", Ok(report(10, 2))),
        answer("a", Ok(report(10, 1))),
        answer("c", Err(InspectError::Unsupported)),
    ];
    let seen = overview(&NodeId::new("a"), listed, answers, &[]);
    let ids: Vec<_> = seen
        .nodes
        .iter()
        .map(|node| node.report.id.as_str())
        .collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert!(
        seen.nodes[2]
            .trouble
            .as_ref()
            .unwrap()
            .contains("inspected")
    );
    assert_eq!(seen.nodes[2].report.roles, ["session"], "as announced");
    let worker = &seen.pools[0].workers[0];
    assert_eq!(
        (worker.reached_by, worker.running, worker.capacity),
        (2, 2, 4)
    );
    assert_eq!(seen.rates.len(), 1);
    assert_eq!(seen.rates[0].outcomes.ok, 4);
    assert!(seen.rates[0].p99_ms.unwrap() <= 0.25);
}

#[test]
fn lists_are_joined_in_order_and_bounded() {
    let part = |items: &[u64], total| {
        Ok(Listing {
            items: items.to_vec(),
            total,
        })
    };
    let answers = vec![
        answer("a", part(&[1, 5], 7)),
        answer("b", part(&[2, 3], 2)),
        answer("c", Err(InspectError::Unreachable("gone".to_owned()))),
    ];
    let joined = gathered(answers, 3, |item| *item);
    let items: Vec<_> = joined.items.iter().map(|it| (it.item, &*it.node)).collect();
    assert_eq!(items, [(1, "a"), (2, "b"), (3, "b")]);
    assert_eq!(joined.total, 9);
    assert_eq!(joined.unseen[0].node, "c");
    assert!(joined.unseen[0].reason.contains("gone"));
}

#[test]
fn a_step_that_some_nodes_have_not_ended_is_not_shown_yet() {
    let mut ahead = report(10, 0);
    ahead.steps.extend(report(15, 0).steps);
    let behind = report(10, 0);
    let mut stuck = report(10, 0);
    stuck.steps[0].at = 0;
    ahead.steps.iter_mut().for_each(|step| step.at += 100);
    let mut level = behind;
    level.steps[0].at += 100;
    let answers = vec![
        answer("a", Ok(ahead)),
        answer("b", Ok(level)),
        answer("c", Ok(stuck)),
    ];
    let seen = overview(&NodeId::new("a"), Vec::new(), answers, &[]);
    let shown: Vec<_> = seen
        .rates
        .iter()
        .map(|it| (it.at, it.outcomes.ok))
        .collect();
    assert_eq!(shown, [(0, 2), (110, 4)]);
}

#[test]
fn what_a_lost_node_did_stays_in_the_plots() {
    let mut history = History::default();
    let mut seen = |answers: Vec<Answer<NodeReport>>| {
        let lost = history.note(&answers);
        let seen = overview(&NodeId::new("a"), Vec::new(), answers, &lost);
        let rates = seen.rates.iter();
        rates.map(|it| (it.at, it.outcomes.ok)).collect::<Vec<_>>()
    };
    let at = |times: &[u64]| NodeReport {
        steps: times.iter().flat_map(|at| report(*at, 0).steps).collect(),
        ..NodeReport::default()
    };
    let both = vec![answer("a", Ok(at(&[5, 10]))), answer("b", Ok(at(&[5, 10])))];
    assert_eq!(seen(both), [(5, 4), (10, 4)]);
    // It does not answer, and then nobody names it any more.
    let gone = Err(InspectError::Unreachable("gone".to_owned()));
    let one = vec![answer("a", Ok(at(&[5, 10, 15]))), answer("b", gone)];
    assert_eq!(seen(one), [(5, 4), (10, 4), (15, 2)]);
    let alone = vec![answer("a", Ok(at(&[5, 10, 15, 20])))];
    assert_eq!(seen(alone), [(5, 4), (10, 4), (15, 2), (20, 2)]);
    // It is back, and tells by itself.
    let both = vec![
        answer("a", Ok(at(&[10, 20]))),
        answer("b", Ok(at(&[10, 20]))),
    ];
    assert_eq!(seen(both), [(10, 4), (20, 4)]);
    // Long after, it is forgotten.
    assert_eq!(seen(vec![answer("a", Ok(at(&[2000])))]), [(2000, 2)]);
}

#[test]
fn a_node_that_starts_is_not_one_that_drains() {
    let starting = NodeInfo {
        draining: true,
        starting: true,
        ..info("a")
    };
    let seen = overview(&NodeId::new("b"), vec![(starting, true)], Vec::new(), &[]);
    assert_eq!(
        (seen.nodes[0].starting, seen.nodes[0].report.draining),
        (true, false)
    );
}
