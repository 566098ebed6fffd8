//! Metrics of links, in a process of its own because metrics are global.

#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

#[path = "../rpc/probe.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod probe;
#[path = "../rpc/proxy.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod proxy;
#[path = "../rpc/record.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod record;
#[path = "../rpc/scripted_gateway.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod scripted_gateway;
#[path = "../rpc/scripted_worker.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod scripted_worker;
#[path = "../rpc/setting.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod setting;

use shoal_rpc::LinkConfig;
use shoal_telemetry::config::Telemetry;
use shoal_telemetry::logging::Logging;
use shoal_telemetry::metrics::prometheus_text;

use crate::probe::{journaled, long, rest};
use crate::scripted_worker::ScriptedWorker;
use crate::setting::{Pair, config, until, within};

fn of_workers(name: &str, direction: Option<&str>) -> f64 {
    let page = prometheus_text();
    let head = format!("{name}{{");
    let direction = direction.map(|it| format!("shoal_direction=\"{it}\""));
    let mut series = page.lines().filter(|line| {
        line.starts_with(&head)
            && line.contains("shoal_kind=\"worker\"")
            && direction.as_ref().is_none_or(|it| line.contains(it))
    });
    let Some(line) = series.next() else {
        return 0.0;
    };
    assert_eq!(series.next(), None, "{name} is ambiguous");
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[tokio::test]
async fn links_frames_and_used_up_credit_are_counted() {
    let _guard = shoal_telemetry::init(&Telemetry::default(), &Logging::default()).unwrap();
    within(async {
        let tight = LinkConfig {
            credit: 16 * 1024,
            ..config()
        };
        let pair = Pair::configured(ScriptedWorker::running("w"), tight, config()).await;
        pair.connected(true).await;
        until(|| of_workers("shoal_rpc_links", None) >= 2.0).await;
        assert!((of_workers("shoal_rpc_connects_total", None) - 2.0).abs() < 1e-9);

        let call = journaled();
        let id = call.id;
        let mut running = pair.remote.start(call, None).await.unwrap();
        let record = pair.worker.call(id).await;
        for _ in 0..100 {
            record.notify(long(1000));
        }
        until(|| of_workers("shoal_rpc_stalls_total", None) >= 1.0).await;
        record.result(1);
        assert_eq!(rest(&mut running).await.len(), 101);
        for direction in ["in", "out"] {
            let frames = of_workers("shoal_rpc_frames_total", Some(direction));
            let bytes = of_workers("shoal_rpc_io_bytes_total", Some(direction));
            assert!(frames >= 3.0, "{frames} {direction}");
            assert!(bytes >= 100_000.0, "{bytes} bytes {direction}");
        }

        assert!(of_workers("shoal_rpc_disconnects_total", None) < 1.0);
        pair.proxy.block();
        until(|| of_workers("shoal_rpc_disconnects_total", None) >= 2.0).await;
        assert!(of_workers("shoal_rpc_links", None) < 1.0);
        pair.proxy.unblock();
        until(|| of_workers("shoal_rpc_connects_total", None) >= 4.0).await;
        until(|| of_workers("shoal_rpc_links", None) >= 2.0).await;
    })
    .await;
}
