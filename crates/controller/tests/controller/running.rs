//! A running controller, and waiting for conditions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use shoal_controller::{Check, Controller, Report};
use shoal_outbound::OutboundConfig;
use shoal_ports::Period;
use shoal_ports::kubernetes::KubernetesSettings;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::Api;

pub(crate) const SERVICES: &str = "api/v1/namespaces/team-a/services";

pub(crate) struct Running {
    pub(crate) report: Box<dyn Fn() -> Report + Send + Sync>,
    pub(crate) taken: watch::Sender<BTreeSet<String>>,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<()>,
}

pub(crate) fn start(api: &Api, me: &str) -> Running {
    start_with(api, me, config())
}

pub(crate) fn config() -> KubernetesSettings {
    KubernetesSettings {
        namespaces: vec!["team-a".to_owned()],
        tokens: true,
        tokens_every: Period::millis(200),
        retry: Period::millis(100),
        lease_duration: Period::seconds(3),
        ..KubernetesSettings::default()
    }
}

pub(crate) fn start_with(api: &Api, me: &str, config: KubernetesSettings) -> Running {
    let check: Check = Arc::new(|_, _| Ok(()));
    let outbound = OutboundConfig::default();
    let controller = Controller::new(api.cluster(), config, outbound, check, me).unwrap();
    let report = Box::new(controller.reporter());
    let (taken, names) = watch::channel(BTreeSet::new());
    let stop = CancellationToken::new();
    let task = tokio::spawn(controller.run(names, stop.clone()));
    Running {
        report,
        taken,
        stop,
        task,
    }
}

impl Running {
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// The time limit only ends failing tests.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(60), wait).await;
    waited.unwrap_or_else(|_| panic!("never: {what}"));
}

pub(crate) fn service(name: &str, annotations: serde_json::Value) -> serde_json::Value {
    json!({
        "metadata": { "name": name, "labels": { "shoal.dev/server": "true" }, "annotations": annotations },
        "spec": { "selector": { "app": name }, "ports": [{ "port": 8080 }] },
    })
}
