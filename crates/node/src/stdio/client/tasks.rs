//! Tasks of a modern server (the extension `io.modelcontextprotocol/tasks`): asked for, listened to, answered.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{Client, ClientError, GOODBYE, as_error, object};

/// How often a task is asked for that is listened to: news can be lost on the way.
const ASKED_ANYWAY: Duration = Duration::from_secs(30);
/// How often a task is asked for that nobody tells of, whatever its server says.
const POLLED: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// The same where its server says nothing.
const POLL_INTERVAL_MS: u64 = 1000;

/// What a client knows of tasks.
#[derive(Default)]
pub(super) struct Tasks {
    /// Whether the server has them.
    pub(super) are_offered: bool,
    /// Whether the client says that it knows them.
    pub(super) are_declared: bool,
    /// The newest that was told of the one that is listened to.
    pub(super) told: Option<Value>,
    /// The `subscriptions/listen` that tells of it.
    listening: Option<u64>,
}

/// What became of a task that was followed.
pub(crate) enum Followed {
    /// It is over: the task, as `tasks/get` has it.
    Ended(Value),
    /// It asks for something that this client cannot answer, and waits.
    Asks,
}

impl Tasks {
    /// A response to a request that nobody waits for: the subscription's says that it is over.
    pub(super) fn response(&mut self, id: &Value) {
        if self.listening.is_some_and(|listening| *id == listening) {
            self.listening = None;
        }
    }
}

impl Client {
    /// Says with each request from now on that tasks are known here; whether the server has them.
    pub(crate) fn declare_tasks(&mut self) -> bool {
        self.tasks.are_declared = self.modern && self.tasks.are_offered;
        self.tasks.are_declared
    }

    /// A `tasks/get` or `tasks/cancel`.
    ///
    /// # Errors
    /// As for a request.
    pub(crate) async fn about_task(
        &mut self,
        method: &str,
        id: &str,
    ) -> Result<Value, ClientError> {
        self.deadline = Instant::now() + self.limit;
        let params = object(json!({ "taskId": id }));
        self.round(method, params).await
    }

    /// Asks the server to stop a task, as the last thing. It goes on where that does not succeed.
    pub(crate) async fn cancel_task(&mut self, id: &str) -> Result<(), ClientError> {
        self.limit = GOODBYE;
        self.about_task("tasks/cancel", id).await.map(drop)
    }

    /// Follows a task to its end, tells of each new status, and answers what it asks. Takes as long as the task does: only each
    /// request is limited.
    ///
    /// # Errors
    /// As for a request.
    pub(crate) async fn follow(&mut self, id: &str) -> Result<Followed, ClientError> {
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
                return Ok(Followed::Ended(task));
            }
            if !self
                .answer_task(id, &task["inputRequests"], &mut answered)
                .await?
            {
                return Ok(Followed::Asks);
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

    /// Answers what the task asks and has no answer of this client; `false` if that cannot be done here.
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

    /// The next that is told of the task; `None` when it is time to ask for it.
    async fn news(&mut self, poll_interval: &Value) -> Option<Value> {
        if self.tasks.listening.is_none() && self.tasks.told.is_none() {
            let interval = poll_interval.as_u64().unwrap_or(POLL_INTERVAL_MS);
            sleep(Duration::from_millis(interval).clamp(POLLED.0, POLLED.1)).await;
            return None;
        }
        timeout(ASKED_ANYWAY, self.told()).await.ok().flatten()
    }

    /// The same from the subscription; `None` when that has ended.
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

    /// Has the server tell of a task, if it does that.
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
