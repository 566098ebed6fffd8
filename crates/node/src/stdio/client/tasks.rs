use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{BridgeClient, ClientError, GOODBYE, as_error, object};

/// How often to poll even a subscribed task, because notifications can be lost.
const ASKED_ANYWAY: Duration = Duration::from_secs(30);
/// The shortest and longest poll interval, whatever the server asks for.
const POLLED: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
const POLL_INTERVAL_MS: u64 = 1000;

#[derive(Default)]
pub(super) struct ClientTasks {
    pub(super) are_offered: bool,
    pub(super) are_declared: bool,
    pub(super) told: Option<Value>,
    listening: Option<u64>,
}

pub(crate) enum FollowedTask {
    /// As `tasks/get` returns it.
    Ended(Value),
    Asks,
}

impl ClientTasks {
    /// A response to a subscription's request means that the subscription has ended.
    pub(super) fn response(&mut self, id: &Value) {
        if self.listening.is_some_and(|listening| *id == listening) {
            self.listening = None;
        }
    }
}

impl BridgeClient {
    /// Returns whether the server supports tasks.
    pub(crate) fn declare_tasks(&mut self) -> bool {
        self.tasks.are_declared = self.modern && self.tasks.are_offered;
        self.tasks.are_declared
    }

    pub(crate) async fn about_task(
        &mut self,
        method: &str,
        id: &str,
    ) -> Result<Value, ClientError> {
        self.deadline = Instant::now() + self.limit;
        let params = object(json!({ "taskId": id }));
        self.round(method, params).await
    }

    /// Cancels the task. The task continues if the request fails.
    pub(crate) async fn cancel_task(&mut self, id: &str) -> Result<(), ClientError> {
        self.limit = GOODBYE;
        self.about_task("tasks/cancel", id).await.map(drop)
    }

    /// Follows the task to its end, and answers its questions. Each request has a time limit, but the task has none.
    pub(crate) async fn follow(&mut self, id: &str) -> Result<FollowedTask, ClientError> {
        let mut task = self.about_task("tasks/get", id).await?;
        let (mut status, mut answered) = (Value::Null, HashSet::new());
        let mut may_listen = true;
        loop {
            if task["status"] != status {
                status = task["status"].clone();
                self.handler
                    .tell(status.as_str().unwrap_or("a status unknown here"));
            }
            if matches!(status.as_str(), Some("completed" | "failed" | "cancelled")) {
                return Ok(FollowedTask::Ended(task));
            }
            if !self
                .answer_task(id, &task["inputRequests"], &mut answered)
                .await?
            {
                return Ok(FollowedTask::Asks);
            }
            if std::mem::take(&mut may_listen)
                && let Err(error) = self.listen(id).await
            {
                tracing::debug!(%error, "nobody tells of the task: it is polled");
            }
            task = match self.news(&task["pollIntervalMs"]).await {
                Some(told) => told,
                None => self.about_task("tasks/get", id).await?,
            };
        }
    }

    /// Returns `false` if the client cannot answer.
    async fn answer_task(
        &mut self,
        id: &str,
        requests: &Value,
        answered: &mut HashSet<String>,
    ) -> Result<bool, ClientError> {
        let mut open = requests.as_object().cloned().unwrap_or_default();
        open.retain(|key, _| !answered.contains(key));
        if open.is_empty() {
            return Ok(true);
        }
        let keys: Vec<String> = open.keys().cloned().collect();
        let Some(responses) = self.responses(&open.into()).await else {
            return Ok(false);
        };
        let params = json!({ "taskId": id, "inputResponses": responses });
        self.deadline = Instant::now() + self.limit;
        self.round("tasks/update", object(params)).await?;
        answered.extend(keys);
        Ok(true)
    }

    /// `None` when it is time to poll.
    async fn news(&mut self, poll_interval: &Value) -> Option<Value> {
        if self.tasks.listening.is_none() && self.tasks.told.is_none() {
            let interval = poll_interval.as_u64().unwrap_or(POLL_INTERVAL_MS);
            sleep(Duration::from_millis(interval).clamp(POLLED.0, POLLED.1)).await;
            return None;
        }
        timeout(ASKED_ANYWAY, self.told()).await.ok().flatten()
    }

    /// `None` when the subscription has ended.
    async fn told(&mut self) -> Option<Value> {
        loop {
            if let Some(task) = self.tasks.told.take() {
                return Some(task);
            }
            self.tasks.listening?;
            let message = self.receive().await.ok()?;
            self.take_aside(message).await.ok()?;
        }
    }

    async fn listen(&mut self, id: &str) -> Result<(), ClientError> {
        self.deadline = Instant::now() + self.limit;
        self.last_id += 1;
        let request = self.last_id;
        let mut params = Map::new();
        params.insert("notifications".to_owned(), json!({ "taskIds": [id] }));
        params.insert("_meta".to_owned(), self.meta().into());
        self.send(json!({
            "jsonrpc": "2.0", "id": request, "method": "subscriptions/listen", "params": params
        }))
        .await?;
        loop {
            let message = self.receive_in_time().await?;
            if message["method"] == "notifications/subscriptions/acknowledged" {
                let honoured = message["params"]["notifications"]["taskIds"].as_array();
                let tells = honoured.is_some_and(|ids| ids.iter().any(|told| told == id));
                self.tasks.listening = tells.then_some(request);
                return Ok(());
            }
            if message["method"].is_null() && message["id"] == request {
                return match message.get("error") {
                    Some(error) => Err(ClientError::Refused(as_error(error))),
                    None => Ok(()),
                };
            }
            self.take_aside(message).await?;
        }
    }
}
