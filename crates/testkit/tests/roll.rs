//! Replaces every process of a cluster. The binary `roll` has more clients and the delays of a real
//! cluster.

use std::time::Duration;

use shoal_testkit::cluster::Role;
use shoal_testkit::roll::{Clients, Options, Toolset, run};
use shoal_testkit::service::Probing;

#[tokio::test(flavor = "multi_thread")]
async fn nobody_notices_that_every_process_is_replaced() {
    let ms = Duration::from_millis;
    let settings = [
        ("shutdown.balancer_delay", "700ms"),
        ("streams.retry", "200ms"),
        ("streams.retry_spread", "500ms"),
        ("redis.response_timeout", "20s"),
        ("cluster.silence", "20s"),
        ("node.lease", "30s"),
    ];
    let options = Options {
        clients: Clients {
            legacy: 40,
            modern: 6,
            tools: Toolset::Chaos,
            thinking: ms(1500),
            longest: ms(3000),
            seed: 7,
        },
        roles: vec![Role::Session, Role::Edge, Role::Worker],
        replicas: 2,
        calm: ms(500),
        between: ms(200),
        probing: Probing {
            period: ms(100),
            successes: 1,
            failures: 2,
            propagation: ms(300),
        },
        grace: Duration::from_secs(60),
        settings: settings
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
    };
    let report = run(&options).await.unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.restarts.len(), 6, "{report}");
    assert!(!report.tally.resumes.is_empty(), "{report}");
    assert!(report.tally.told_to_return > 0, "{report}");
    let handed_over = report.restarts.iter().filter_map(|one| one.handed_over);
    assert!(
        handed_over.map(|one| one.sessions).sum::<u64>() > 0,
        "{report}"
    );
}
