//! Replaces every process of a cluster. The binary `roll` has more clients and the delays of a real
//! cluster.

use std::time::Duration;

use shoal_testkit::roll::{Options, run};
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
        sessions: 40,
        modern: Some(6),
        thinking: ms(1500),
        longest: ms(3000),
        seed: 7,
        calm: ms(500),
        probing: Probing {
            period: ms(100),
            propagation: ms(300),
            ..Probing::default()
        },
        settings: settings
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        ..Options::default()
    };
    let report = run(&options).await.unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.restarts.len(), 6, "{report}");
    assert!(!report.tally.resumes.is_empty(), "{report}");
    assert!(report.tally.told_to_return > 0, "{report}");
    let handed_over = |fields: &str| {
        let sessions = fields.strip_prefix("sessions=");
        sessions.is_some_and(|count| !count.starts_with("0 "))
    };
    let mut fields = report
        .restarts
        .iter()
        .filter_map(|one| one.handed_over.as_deref());
    assert!(fields.any(handed_over), "{report}");
}
