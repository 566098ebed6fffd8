use std::time::Duration;

use http::HeaderValue;
use tokio::time::{Instant, sleep, timeout_at};

use super::answer::check_text;
use super::client::Client;
use super::legacy;
use super::sse::Event;
use crate::connection::{Connection, Goodbye, Reply};
use crate::failure::Failure;
use crate::findings::Findings;
use crate::resume::check::CallCheck;
use crate::resume::violation::Violation;
use crate::target::Target;

const RESUME_PAUSE: Duration = Duration::from_millis(200);

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn call(
    client: &mut Client,
    tool: &'static str,
    arguments: &str,
    text: &str,
) -> Result<(), Failure> {
    let name = HeaderValue::from_static(tool);
    let params = format!(r#""name":"{tool}","arguments":{arguments}"#);
    let check = |result: &str| check_text(result, text);
    client
        .request("tools/call", Some(&name), &params, check)
        .await
}

/// `text` must not need JSON escapes.
pub(crate) async fn echo(
    client: &mut Client,
    tool: &'static str,
    text: &str,
) -> Result<(), Failure> {
    call(client, tool, &format!(r#"{{"text":"{text}"}}"#), text).await
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) steps: usize,
    pub(crate) interval: Duration,
}

impl Job {
    pub(crate) fn length(self) -> Duration {
        self.interval * u32::try_from(self.steps).unwrap_or(u32::MAX)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Journey {
    /// The last message is the answer.
    pub(crate) messages: Vec<Instant>,
    pub(crate) resumes: usize,
    pub(crate) refusals: usize,
}

/// Resumes a broken stream at each of `targets` in turn. Reports faults to `findings`.
pub(crate) async fn long_job(
    client: &mut Client,
    job: Job,
    targets: &[Target],
    findings: &Findings,
) -> Result<Journey, Failure> {
    let id = client.next_id();
    let token = format!("job-{id}");
    let params = format!(
        r#""name":"long_job","arguments":{{"steps":{},"interval_ms":{}}},"_meta":{{"progressToken":"{token}"}}"#,
        job.steps,
        job.interval.as_millis()
    );
    let text = format!("done after {} steps", job.steps);
    let mut call = Call {
        check: CallCheck::new(id, token, job.steps, Some(text)),
        journey: Journey::default(),
        last_id: None,
        retry: RESUME_PAUSE,
        deadline: Instant::now() + job.length() + PATIENCE,
    };
    let name = HeaderValue::from_static("long_job");
    let reply = client.start(id, "tools/call", Some(&name), &params).await?;
    if let Some(whole) = call.see_through(reply, client.session(), targets).await {
        client.give_back(whole);
    }
    for finding in call.check.finish() {
        findings.add(&format!("{:?}", finding.violation), finding.detail);
    }
    Ok(call.journey)
}

struct Call {
    check: CallCheck,
    journey: Journey,
    last_id: Option<String>,
    retry: Duration,
    deadline: Instant,
}

impl Call {
    /// Returns the first stream if it did not break.
    async fn see_through(
        &mut self,
        mut reply: Reply,
        session: Option<&legacy::Session>,
        targets: &[Target],
    ) -> Option<Reply> {
        loop {
            let ended = self.read(&mut reply).await;
            if self.check.is_answered() {
                return (ended && self.journey.resumes == 0).then_some(reply);
            }
            let (Some(session), Some(_)) = (session, &self.last_id) else {
                self.check.find(
                    Violation::MissingAnswer,
                    "the stream ended without a way back",
                );
                return None;
            };
            reply = self.resume(session, targets).await?;
        }
    }

    /// Returns whether the server ended the stream cleanly.
    async fn read(&mut self, reply: &mut Reply) -> bool {
        loop {
            match timeout_at(self.deadline, reply.next()).await {
                Ok(Ok(Some(event))) => self.take(event),
                Ok(Ok(None)) => return true,
                Ok(Err(_)) | Err(_) => return false,
            }
        }
    }

    fn take(&mut self, event: Event) {
        if let Some(retry_ms) = event.retry_ms {
            self.retry = Duration::from_millis(retry_ms);
        }
        if !event.data.is_empty() {
            self.journey.messages.push(Instant::now());
            self.check.message(&event.data);
        }
        self.last_id = event.id.or(self.last_id.take());
    }

    /// Reports a finding and returns `None` if the stream cannot be resumed.
    async fn resume(&mut self, session: &legacy::Session, targets: &[Target]) -> Option<Reply> {
        let last_id = self.last_id.as_deref().unwrap_or_default();
        let last_id = HeaderValue::from_str(last_id).ok();
        let mut pause = self.retry;
        for target in targets.iter().cycle() {
            if Instant::now() + pause > self.deadline {
                break;
            }
            sleep(pause).await;
            match listen(session, target, last_id.as_ref()).await {
                Ok(reply) => {
                    self.journey.resumes += 1;
                    return Some(reply);
                }
                Err(Failure::Transport(_)) => pause = RESUME_PAUSE,
                Err(Failure::Status {
                    status: 429 | 503,
                    retry_after_s,
                    ..
                }) => {
                    self.journey.refusals += 1;
                    pause = retry_after_s.map_or(RESUME_PAUSE, Duration::from_secs);
                }
                Err(failure) => {
                    self.check
                        .find(Violation::RefusedResume, failure.to_string());
                    return None;
                }
            }
        }
        self.check
            .find(Violation::RefusedResume, "no way back in time");
        None
    }
}

/// The stream's connection is reset on drop, because many orderly closes would use up the ports.
pub(crate) async fn listen(
    session: &legacy::Session,
    target: &Target,
    last_event_id: Option<&HeaderValue>,
) -> Result<Reply, Failure> {
    let connection = Connection::open(target, Goodbye::Reset).await?;
    connection.send(session.listen(last_event_id)).await
}
