use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::Options;
use super::case::{Case, Deployment};
use super::credentials::Credentials;
use super::files::Files;
use super::proof;
use crate::drive::{self, Plan};
use crate::report::RunReport;
use crate::servers::Running;
use crate::servers::cluster::Cluster;
use crate::servers::collector::{Collector, Conduct};
use crate::servers::get::get;
use crate::servers::spawned::{Environment, Spawned};

/// The metrics are read so often that short rounds include a reading.
const READ_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) report: RunReport,
    pub(super) spans: Spans,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spans {
    pub(super) received: u64,
    /// Known only if the server is one process with metrics.
    pub(super) lost: Option<u64>,
}

/// Fails if the case's features do not work.
pub(super) async fn turn(
    case: &Case,
    options: &Options,
    progress: impl Fn(&str),
) -> anyhow::Result<Turn> {
    let cores = options.cores;
    let credentials = Credentials::of(case.features.authentication).await;
    let files = Files::of(&case.features)?;
    let collector = match &case.features.traces {
        Some(traces) => Some(Collector::start(
            traces.collector,
            cores.map(|cores| cores.collector),
        )?),
        None => None,
    };
    let endpoint = collector
        .as_ref()
        .map(|collector| collector.endpoint.as_str());
    let environment = case.environment(endpoint, credentials.as_ref(), &files);
    let core = cores.map(|cores| cores.server);
    let server = start(case.deployment, &options.shoal, core, &environment)?;
    proof::of(case, server.url(), server.admin(), credentials.as_ref()).await?;
    files.expect_a_trail().await?;
    let metered = server.admin().filter(|_| case.features.metrics);
    let admin = metered.map(str::to_owned);
    let plan = Plan {
        authorization: credentials.as_ref().map(Credentials::header),
        redis: None,
        ..options.turns.plan(&server, case.mode)
    };
    let report = tokio::select! {
        report = drive::run(&plan, progress) => report?,
        failed = read_metrics(admin.as_deref()) => match failed? {},
        never = stay_awake() => match never {},
    };
    let received = collector.as_ref().map_or(0, Collector::spans);
    let lost = match admin {
        Some(admin) => Some(lost_spans(&metrics(admin).await?)),
        None => None,
    };
    let answers = (case.features.traces).is_some_and(|traces| traces.collector == Conduct::Answers);
    ensure!(
        !answers || received > 0,
        "no span reached the collector; measure for longer (--seconds)"
    );
    Ok(Turn {
        report,
        spans: Spans { received, lost },
    })
}

fn start(
    deployment: Deployment,
    shoal: &Path,
    core: Option<usize>,
    environment: &Environment,
) -> anyhow::Result<Running> {
    Ok(match deployment {
        Deployment::OneProcess => Running::One(Spawned::shoal(shoal, core, environment)?),
        Deployment::Cluster => Running::Many(Cluster::start(shoal, core, environment)?),
    })
}

/// In a virtual machine, waking the generator's thread costs the server more than the rest of an
/// answer, and a slow server would wake it more often.
async fn stay_awake() -> Infallible {
    loop {
        tokio::task::yield_now().await;
    }
}

async fn read_metrics(admin: Option<&str>) -> anyhow::Result<Infallible> {
    loop {
        tokio::time::sleep(READ_EVERY).await;
        if let Some(admin) = admin {
            metrics(admin.to_owned()).await?;
        }
    }
}

pub(super) async fn metrics(admin: String) -> anyhow::Result<String> {
    tokio::task::spawn_blocking(move || get(&admin, "/metrics"))
        .await
        .context("the thread that reads metrics ended early")?
}

fn lost_spans(metrics: &str) -> u64 {
    let values = metrics.lines().filter_map(|line| {
        let (labels, value) = line
            .strip_prefix("shoal_telemetry_dropped_total{")?
            .rsplit_once("} ")?;
        let is_of_traces = labels
            .split(',')
            .any(|label| label == r#"shoal_telemetry_signal="traces""#);
        is_of_traces.then(|| value.parse::<f64>().ok())?
    });
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a counter is whole and not negative, and written as a float"
    )]
    let lost = values.sum::<f64>() as u64;
    lost
}

#[cfg(test)]
mod tests {
    use super::lost_spans;

    #[test]
    fn lost_spans_are_added_up_over_their_reasons() {
        let metrics = r#"# TYPE shoal_telemetry_dropped_total counter
shoal_telemetry_dropped_total{shoal_reason="queue_full",shoal_telemetry_signal="traces"} 40
shoal_telemetry_dropped_total{shoal_reason="export_failed",shoal_telemetry_signal="traces"} 2
shoal_telemetry_dropped_total{shoal_reason="export_failed",shoal_telemetry_signal="logs"} 7
shoal_telemetry_exports_total{outcome="failed",shoal_telemetry_signal="traces"} 9
"#;
        assert_eq!(lost_spans(metrics), 42);
        assert_eq!(lost_spans(""), 0);
    }
}
