use super::costs::{COUNTED, Costs, Counted, Each, Held, by_role, fitted};
use super::{Load, MEASURED, mesh, plan};

const LOAD: Load = Load {
    sessions: 1_000_000.0,
    streams: 0.5,
    calls: 0.1,
    journaled: 0.2,
    events: 2.0,
    modern: 0.0,
    lifetime: 1000.0,
    stream_lifetime: 500.0,
    keep_alive: 10.0,
    cores: 4.0,
    memory: 8.0,
    use_of: 0.5,
    sessions_per_node: 100_000.0,
    streams_per_edge: 20_000.0,
};

fn costs() -> Costs {
    let held = Held {
        process: 0.0,
        session: 1.0,
        stream: 10.0,
    };
    Costs {
        provenance: String::new(),
        cpu_us: by_role(|_| fitted(&[1000.0, 10.0, 8.0, 50.0, 5.0, 100.0, 200.0, 2.0])),
        redis_commands: Each::from([(Counted::Journaled, 20.0)]),
        memory_kib: by_role(|_| held),
    }
}

#[test]
fn rates_follow_from_the_load() {
    let rates: Vec<f64> = COUNTED[1..].iter().map(|what| LOAD.rates()[what]).collect();
    let expected = [
        80_000.0,
        0.0,
        20_000.0,
        40_000.0,
        1000.0,
        500.0 + 1000.0,
        50_000.0,
    ];
    assert_eq!(rates, expected);
    assert_eq!(LOAD.open_streams(), 500_000.0);
}

#[test]
fn nodes_follow_from_what_is_short() {
    let plan = plan(&LOAD, &costs());
    // 0.8 + 1 + 0.2 + 0.1 + 0.3 + 0.1 seconds of CPU per second.
    let workers = &plan.workers;
    assert!((workers.cores - 2.5).abs() < 1e-9, "{}", workers.cores);
    assert_eq!((workers.count, workers.because), (2.0, "two at least"));
    assert_eq!((plan.edges.count, plan.edges.because), (25.0, "limit"));
    let session_nodes = &plan.session_nodes;
    assert_eq!(
        (session_nodes.count, session_nodes.because),
        (10.0, "limit")
    );
    // A shard has one thread, which is planned to be half busy.
    assert_eq!((plan.shards.count, plan.shards.because), (5.0, "CPU"));
    assert_eq!(plan.redis_commands, 400_000.0);
}

#[test]
fn few_nodes_cost_one_another_by_their_square() {
    let small = mesh(2.0, 3.0, 4.0);
    // 2 × 3 links from edges, 3 × 2 among session nodes, 4 × 5 of workers.
    assert_eq!((small.links, small.beats, small.listed), (32.0, 4.0, 25.0));
    assert_eq!(small.links_of_one, 12.0);
    assert_eq!(mesh(20.0, 30.0, 40.0).listed, 100.0 * small.listed);
    // Beyond a hundred nodes, nodes read the list less often, so ten times the nodes mean only ten
    // times the work.
    assert_eq!(
        mesh(500.0, 500.0, 0.0).listed,
        10.0 * mesh(50.0, 50.0, 0.0).listed
    );
}

#[test]
fn the_measured_costs_are_of_use() {
    let costs = Costs::parse(MEASURED).unwrap();
    assert!(
        !costs.provenance.is_empty(),
        "numbers without an origin are guesses"
    );
    let text = toml::to_string(&costs).unwrap();
    assert_eq!(Costs::parse(&text).unwrap(), costs);
    let text = plan(&LOAD, &costs).to_string();
    assert!(
        text.contains("1000000 sessions, 500000 with an open stream"),
        "{text}"
    );
}

#[test]
fn costs_without_a_role_are_refused() {
    let mut costs = costs();
    costs.cpu_us.remove("edge");
    let refused = Costs::parse(&toml::to_string(&costs).unwrap()).unwrap_err();
    assert!(refused.to_string().contains("edge is missing"), "{refused}");
}
