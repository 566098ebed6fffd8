use std::collections::HashMap;

use shoal_ports::{
    InspectError, Listing, NodeId, NodeInfo, NodeReport, Outcomes, PoolReport, RecentCalls, Step,
    ToolReport, WorkerReport,
};

use super::super::history::History;
use super::super::report::Overview;
use super::{NodeAnswer, gathered, overview, tools};

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
        left_out: Vec::new(),
        cut: Vec::new(),
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

fn answer<T>(node: &str, said: Result<T, InspectError>) -> NodeAnswer<T> {
    NodeAnswer {
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
    let seen = overview(&NodeId::new("a"), listed, answers, HashMap::new());
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
    let seen = overview(&NodeId::new("a"), Vec::new(), answers, HashMap::new());
    let shown: Vec<_> = seen
        .rates
        .iter()
        .map(|it| (it.at, it.outcomes.ok))
        .collect();
    assert_eq!(shown, [(0, 2), (110, 4)]);
}

fn seen(history: &History, answers: Vec<NodeAnswer<NodeReport>>) -> Overview {
    history.note(&answers);
    let lost = history.of_others(&answers);
    overview(&NodeId::new("a"), Vec::new(), answers, lost)
}

#[test]
fn a_lost_node_is_in_the_plots_if_another_has_heard_of_it() {
    let heard = History::default();
    let mut told = report(10, 0);
    told.steps.extend(report(15, 0).steps);
    heard.note(&[answer("b", Ok(told)), answer("c", Ok(report(15, 0)))]);
    assert_eq!(heard.lost(|_| true), [], "nobody is lost");
    let remembered = heard.lost(|node| node.as_str() == "c");
    assert_eq!((remembered.len(), &*remembered[0].node), (1, "b"));

    let history = History::default();
    let mut level = report(15, 0);
    level.steps.insert(0, report(10, 0).steps.remove(0));
    level.steps.extend(report(20, 0).steps);
    let mut other = level.clone();
    other.remembered = remembered;
    let silent = Err(InspectError::Unreachable("gone".to_owned()));
    let answers = vec![
        answer("a", Ok(level)),
        answer("c", Ok(other)),
        answer("d", silent),
    ];
    let seen = seen(&history, answers);
    let rates = seen.rates.iter().map(|it| (it.at, it.outcomes.ok));
    assert_eq!(rates.collect::<Vec<_>>(), [(10, 6), (15, 6), (20, 4)]);
    let lost = seen.lost.iter().map(|lost| (&*lost.node, lost.until));
    assert_eq!(lost.collect::<Vec<_>>(), [("b", Some(15)), ("d", None)]);
    assert!(
        seen.nodes
            .iter()
            .all(|node| node.report.remembered.is_empty())
    );
    assert_eq!(
        history.lost(|node| node.as_str() != "b").len(),
        1,
        "and goes on"
    );
}

#[test]
fn calls_of_a_tool_are_those_of_all_nodes() {
    let tool = |name: &str, ok, seconds| ToolReport {
        name: name.to_owned(),
        pool: "p".to_owned(),
        recent: RecentCalls {
            seconds,
            outcomes: Outcomes {
                ok,
                ..Outcomes::default()
            },
            latency: if ok == 0 { vec![] } else { vec![0, 0, ok] },
        },
        ..ToolReport::default()
    };
    let part = |items: Vec<ToolReport>| Ok(Listing { total: 9, items });
    let answers = || {
        vec![
            answer(
                "a",
                part(vec![
                    tool("add", 60, 60),
                    tool("zip", 1, 60),
                    tool("all", 0, 60),
                ]),
            ),
            answer(
                "b",
                part(vec![
                    tool("add", 60, 30),
                    tool("zip", 0, 0),
                    tool("all", 0, 30),
                ]),
            ),
            answer("c", Err(InspectError::Unsupported)),
        ]
    };
    let seen = tools(answers(), 2);
    let names = seen.items.iter().map(|tool| &*tool.name);
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["add", "zip"],
        "those that are called"
    );
    assert_eq!((seen.total, seen.unseen.len()), (9, 1));
    let [add, zip] = &seen.items[..] else {
        panic!("{seen:?}")
    };
    assert_eq!((add.outcomes.ok, add.rate), (120, Some(3.0)));
    assert!((0.5..=1.0).contains(&add.p95_ms.unwrap()), "{add:?}");
    assert_eq!(zip.rate, None, "one node does not count them");
    let all = &tools(answers(), 9).items[1];
    assert_eq!((&*all.name, all.rate, all.p95_ms), ("all", Some(0.0), None));
}

#[test]
fn what_a_lost_node_did_stays_in_the_plots() {
    let history = History::default();
    let seen = |answers: Vec<NodeAnswer<NodeReport>>| {
        let seen = seen(&history, answers);
        let rates = seen.rates.iter();
        rates.map(|it| (it.at, it.outcomes.ok)).collect::<Vec<_>>()
    };
    let at = |times: &[u64]| NodeReport {
        steps: times.iter().flat_map(|at| report(*at, 0).steps).collect(),
        ..NodeReport::default()
    };
    let both = vec![answer("a", Ok(at(&[5, 10]))), answer("b", Ok(at(&[5, 10])))];
    assert_eq!(seen(both), [(5, 4), (10, 4)]);
    let gone = Err(InspectError::Unreachable("gone".to_owned()));
    let one = vec![answer("a", Ok(at(&[5, 10, 15]))), answer("b", gone)];
    assert_eq!(seen(one), [(5, 4), (10, 4), (15, 2)]);
    let alone = vec![answer("a", Ok(at(&[5, 10, 15, 20])))];
    assert_eq!(seen(alone), [(5, 4), (10, 4), (15, 2), (20, 2)]);
    let both = vec![
        answer("a", Ok(at(&[10, 20]))),
        answer("b", Ok(at(&[10, 20]))),
    ];
    assert_eq!(seen(both), [(10, 4), (20, 4)]);
    assert_eq!(seen(vec![answer("a", Ok(at(&[2000])))]), [(2000, 2)]);
}

#[test]
fn a_node_that_starts_is_not_one_that_drains() {
    let starting = NodeInfo {
        draining: true,
        starting: true,
        ..info("a")
    };
    let seen = overview(
        &NodeId::new("b"),
        vec![(starting, true)],
        Vec::new(),
        HashMap::new(),
    );
    assert_eq!(
        (seen.nodes[0].starting, seen.nodes[0].report.draining),
        (true, false)
    );
}
