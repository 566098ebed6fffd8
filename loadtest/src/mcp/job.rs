//! Verified calls of `long_job`: every step must come once and in order, then the result.

use std::time::Duration;

use http::HeaderValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::check::{CallCheck, SeenIds};
use super::client::Client;
use super::legacy;
use super::violation::{Finding, Violation};
use crate::connection::{Connection, Event, Goodbye, Reply};
use crate::failure::Failure;
use crate::findings::Findings;
use crate::target::Target;

const RESUME_PAUSE: Duration = Duration::from_millis(200);

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) steps: usize,
    /// The time before each notification.
    pub(crate) interval: Duration,
}

impl Job {
    pub(crate) const fn burst(steps: usize) -> Self {
        let interval = Duration::ZERO;
        Self { steps, interval }
    }

    pub(crate) fn length(self) -> Duration {
        self.interval * u32::try_from(self.steps).unwrap_or(u32::MAX)
    }

    /// Calls `long_job`. The caller reads the answer, and passes its messages to the check.
    pub(crate) async fn start(self, client: &mut Client) -> Result<(Reply, CallCheck), Failure> {
        let (id, tool) = (client.next_id(), HeaderValue::from_static("long_job"));
        let Self { steps, interval } = self;
        let params = format!(
            r#""name":"long_job","arguments":{{"steps":{steps},"interval_ms":{}}}"#,
            interval.as_millis()
        );
        let meta = format!(r#""progressToken":{id}"#);
        let starting = client.start_with(id, "tools/call", Some(&tool), &params, &meta);
        let text = format!("done after {steps} steps");
        Ok((starting.await?, CallCheck::new(id, steps, Some(text))))
    }

    /// Makes a call whose stream must not break.
    pub(crate) async fn call(self, client: &mut Client) -> Result<(), Failure> {
        let (mut reply, check) = self.start(client).await?;
        let mut watch = Watch::new(check);
        watch.read(&mut reply, Duration::ZERO).await?;
        client.give_back(reply);
        watch.finish()
    }

    /// Makes a call, and resumes its stream at each of `targets` in turn if it breaks. Reports faults to `findings`, and drops
    /// `starting` at the first message.
    pub(crate) async fn see_through(
        self,
        client: &mut Client,
        targets: &[Target],
        findings: &Findings,
        starting: Option<mpsc::Sender<()>>,
    ) -> Result<Journey, Failure> {
        let deadline = Instant::now() + self.length() + PATIENCE;
        let (reply, check) = self.start(client).await?;
        let mut call = Call {
            check,
            journey: Journey::default(),
            starting,
            last_id: None,
            retry: RESUME_PAUSE,
            deadline,
        };
        if let Some(whole) = call.follow(reply, client.session(), targets).await {
            client.give_back(whole);
        }
        for finding in call.check.finish() {
            findings.add(&format!("{:?}", finding.violation), finding.detail);
        }
        Ok(call.journey)
    }
}

/// Checks the events of one call.
pub(crate) struct Watch {
    check: CallCheck,
    ids: SeenIds,
}

impl Watch {
    pub(crate) fn new(check: CallCheck) -> Self {
        let ids = SeenIds::default();
        Self { check, ids }
    }

    /// Reads to the end of the body, with a pause after each event. Fails if an event's ID was seen before.
    pub(crate) async fn read(&mut self, reply: &mut Reply, pause: Duration) -> Result<(), Failure> {
        while let Some(event) = reply.next().await? {
            if let Some(id) = &event.id
                && !self.ids.insert(id)
            {
                return Err(Failure::Wrong(format!("event id {id} came twice")));
            }
            if !event.data.is_empty() {
                self.check.message(&event.data);
            }
            if !pause.is_zero() {
                sleep(pause).await;
            }
        }
        Ok(())
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.check.is_answered()
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        verdict(&self.check.finish())
    }

    /// Ends the check of a stream that was cut before its response. Missing messages therefore do
    /// not count.
    pub(crate) fn finish_cut(self) -> Result<(), Failure> {
        let mut findings = self.check.finish();
        findings.retain(|finding| {
            !matches!(
                finding.violation,
                Violation::Lost | Violation::MissingAnswer
            )
        });
        verdict(&findings)
    }
}

fn verdict(findings: &[Finding]) -> Result<(), Failure> {
    let Some(Finding { violation, detail }) = findings.first() else {
        return Ok(());
    };
    let count = findings.len();
    Err(Failure::Wrong(format!(
        "{violation:?} ({count} findings in the call), first: {detail}"
    )))
}

#[derive(Debug, Default)]
pub(crate) struct Journey {
    /// The last message is the answer.
    pub(crate) messages: Vec<Instant>,
    pub(crate) resumes: usize,
    /// Resumes that were refused with 429 or 503.
    pub(crate) refusals: usize,
}

struct Call {
    check: CallCheck,
    journey: Journey,
    starting: Option<mpsc::Sender<()>>,
    last_id: Option<String>,
    retry: Duration,
    deadline: Instant,
}

impl Call {
    /// Reads to the answer, over resumed streams if needed. Returns the first stream if it did not break.
    async fn follow(
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
            let (Some(session), Some(last_id)) = (session, &self.last_id) else {
                let why = "the stream ended without a way back";
                self.check.find(Violation::MissingAnswer, why);
                return None;
            };
            let back = Back {
                session,
                last_id: Some(last_id),
                pause: self.retry,
                again: RESUME_PAUSE,
                deadline: self.deadline,
            };
            let refusals = &mut self.journey.refusals;
            let count = |failure: &Failure| *refusals += usize::from(failure.is_passing());
            match back.come(targets.iter().cycle(), count).await {
                Ok(resumed) => reply = resumed,
                Err(failure) => {
                    let why = failure.to_string();
                    self.check.find(Violation::RefusedResume, why);
                    return None;
                }
            }
            self.journey.resumes += 1;
        }
    }

    /// Reads the stream, and returns whether the server ended it cleanly.
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
            self.starting = None;
            self.journey.messages.push(Instant::now());
            self.check.message(&event.data);
        }
        self.last_id = event.id.or(self.last_id.take());
    }
}

/// The way back to a broken stream.
pub(crate) struct Back<'a> {
    pub(crate) session: &'a legacy::Session,
    pub(crate) last_id: Option<&'a str>,
    /// The pause before the first attempt.
    pub(crate) pause: Duration,
    /// The pause before later attempts, if the server names none.
    pub(crate) again: Duration,
    pub(crate) deadline: Instant,
}

impl Back<'_> {
    /// Tries one target after the other while the server is away or busy. Passes each failure to `failed`.
    pub(crate) async fn come(
        self,
        targets: impl Iterator<Item = &Target>,
        mut failed: impl FnMut(&Failure),
    ) -> Result<Reply, Failure> {
        let last_id = self.last_id.and_then(|id| HeaderValue::from_str(id).ok());
        let mut pause = self.pause;
        for target in targets {
            if Instant::now() + pause > self.deadline {
                break;
            }
            sleep(pause).await;
            let failure = match listen(self.session, target, last_id.as_ref()).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            failed(&failure);
            pause = match (&failure, failure.retry_after(self.again)) {
                (Failure::Transport(_), _) => self.again,
                (_, Some(pause)) => pause,
                (_, None) => return Err(failure),
            };
        }
        Err(Failure::Transport("no way back in time".to_owned()))
    }
}

/// Opens a stream on its own connection, which is reset on drop, because many orderly closes would
/// use up the ports.
pub(crate) async fn listen(
    session: &legacy::Session,
    target: &Target,
    last_event_id: Option<&HeaderValue>,
) -> Result<Reply, Failure> {
    let connection = Connection::open(target, Goodbye::Reset).await?;
    connection.send(session.listen(last_event_id)).await
}
