//! Tells the owners of refused objects the reasons, by Kubernetes Events.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::time::timeout;

use crate::kind::kubernetes_kind;
use crate::plan::{Plan, Refused};

/// Maximum number of Events in one turn.
const AT_ONCE: usize = 50;
/// Time limit for sending one Event.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sends Events for refused objects, each refusal once.
pub(crate) struct Events {
    client: Client,
    reporter: Reporter,
    /// Each object's uid and the message for which an Event was tried, by the object's path.
    told: BTreeMap<String, (String, String)>,
}

impl Events {
    pub(crate) fn new(client: Client, me: &str) -> Self {
        let reporter = Reporter {
            controller: "shoal.dev/controller".to_owned(),
            instance: Some(me.to_owned()),
        };
        Self {
            client,
            reporter,
            told: BTreeMap::new(),
        }
    }

    /// Sends Events for new refusals and changed reasons. Tries each refusal once, because the log and `/status` show
    /// it even if its Event is lost.
    pub(crate) async fn tell(&mut self, plan: &Plan<'_>) {
        let now: BTreeMap<String, &Refused<'_>> = (plan.refused.iter())
            .map(|refused| (refused.object.path(), refused))
            .collect();
        self.told.retain(|path, _| now.contains_key(path));
        let mut left = AT_ONCE;
        for (path, refused) in now {
            let (object, refusal) = (refused.object, &refused.refusal);
            let what = (object.uid.clone(), refusal.message.clone());
            if left == 0 || self.told.get(&path) == Some(&what) {
                continue;
            }
            left -= 1;
            tracing::warn!(
                object = path,
                reason = refusal.reason.as_str(),
                "an object is no pool: {}",
                refusal.message
            );
            let event = Event {
                type_: EventType::Warning,
                reason: refusal.reason.as_str().to_owned(),
                note: Some(refusal.message.clone()),
                action: "MakePool".to_owned(),
                secondary: None,
            };
            let about = ObjectReference {
                api_version: Some(object.api_version.clone()),
                kind: Some(kubernetes_kind(object.kind).to_owned()),
                name: Some(object.name.clone()),
                namespace: Some(object.namespace.clone()),
                uid: Some(object.uid.clone()),
                ..ObjectReference::default()
            };
            // Make a new recorder each time, because a recorder repeats its first text for later Events with the same
            // reason.
            let recorder = Recorder::new(self.client.clone(), self.reporter.clone());
            self.told.insert(path.clone(), what);
            match timeout(PATIENCE, recorder.publish(&event, &about)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(object = path, "cannot make an Event: {error}"),
                Err(_) => {
                    let seconds = PATIENCE.as_secs();
                    tracing::warn!(
                        object = path,
                        "cannot make an Event: the API server took longer than {seconds} s"
                    );
                }
            }
        }
    }
}
