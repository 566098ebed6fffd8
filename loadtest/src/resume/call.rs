use std::time::Duration;

use http::HeaderValue;
use tokio::time::{Instant, timeout_at};

use super::chance::{Chance, Cut, Pause};
use super::replay::replay;
use super::session::Session;
use crate::connection::{Event, Reply};
use crate::failure::Failure;
use crate::mcp::check::{CallCheck, digest};
use crate::mcp::client::Client;
use crate::mcp::job::Job;
use crate::mcp::violation::{Finding, Violation};

const CALL_GRACE: Duration = Duration::from_secs(30);

/// The client reads on after the response, to detect superfluous messages.
const LINGER: Duration = Duration::from_secs(2);

const PAST_THE_END: Duration = Duration::from_millis(500);

/// The pause before a resume if the server ended the stream early and named none.
const SERVER_END_PAUSE: Duration = Duration::from_millis(50);

enum Ended {
    /// The response came. If `whole`, the end of the body came too.
    Answered {
        whole: bool,
    },
    Cut,
    ByServer,
    Silent,
}

pub(super) struct Call<'a> {
    session: &'a Session,
    chance: &'a mut Chance,
    job: Job,
    check: CallCheck,
    began: Instant,
    last_id: Option<String>,
    retry: Option<Duration>,
    /// The events' IDs and digests of their data.
    record: Vec<(String, u64)>,
}

impl<'a> Call<'a> {
    pub(super) async fn long_job(
        session: &'a Session,
        client: &mut Client,
        chance: &'a mut Chance,
    ) -> Result<(), Failure> {
        let job = chance.job();
        let began = Instant::now();
        let starting = timeout_at(began + job.length() + CALL_GRACE, job.start(client)).await;
        let (reply, check) = starting.unwrap_or_else(|_| Err(no_answer()))?;
        let mut call = Self::new(session, chance, job, check, began);
        session.tally.count(|counts| counts.calls += 1);
        let unbroken = call.see_through(reply).await;
        if let Some(reply) = unbroken {
            client.give_back(reply);
        }
        if call.check.is_answered() {
            session.tally.count(|counts| counts.answered += 1);
            if call.chance.replays() {
                replay(session, call.chance, &call.record, &mut call.check).await;
            }
        }
        session.tally.found(session.client, call.check.finish());
        Ok(())
    }

    pub(super) async fn increment(
        session: &'a Session,
        client: &mut Client,
        chance: &'a mut Chance,
    ) -> Result<(), Failure> {
        let (job, began) = (Job::burst(0), Instant::now());
        let (id, tool) = (
            client.next_id(),
            HeaderValue::from_static("increment_counter"),
        );
        let check = CallCheck::new(id, 0, None);
        let mut call = Self::new(session, chance, job, check, began);
        let params = r#""name":"increment_counter","arguments":{}"#;
        let starting = client.start(id, "tools/call", Some(&tool), params);
        let starting = timeout_at(call.deadline(), starting).await;
        let mut reply = starting.unwrap_or_else(|_| Err(no_answer()))?;
        if let Ended::Answered { whole: true } = call.read(&mut reply, Cut::Never).await {
            client.give_back(reply);
        }
        session.tally.count(|counts| counts.increments += 1);
        session.tally.found(session.client, call.check.finish());
        Ok(())
    }

    fn new(
        session: &'a Session,
        chance: &'a mut Chance,
        job: Job,
        check: CallCheck,
        began: Instant,
    ) -> Self {
        Self {
            session,
            chance,
            job,
            check,
            began,
            last_id: None,
            retry: None,
            record: Vec::new(),
        }
    }

    fn deadline(&self) -> Instant {
        self.began + self.job.length() + CALL_GRACE
    }

    /// Returns the first stream if it did not break.
    async fn see_through(&mut self, mut reply: Reply) -> Option<Reply> {
        let mut resumes = 0;
        loop {
            let cut = self.chance.cut(&self.job, resumes);
            match self.read(&mut reply, cut).await {
                Ended::Answered { whole } => return (whole && resumes == 0).then_some(reply),
                Ended::Silent => return None,
                Ended::Cut => {
                    self.leave(reply);
                    self.stay_away().await;
                }
                Ended::ByServer => {
                    self.session.tally.count(|counts| counts.server_ends += 1);
                    let pause = self.retry.unwrap_or(SERVER_END_PAUSE);
                    tokio::time::sleep(pause.min(Duration::from_secs(2))).await;
                }
            }
            reply = self.resume().await?;
            resumes += 1;
        }
    }

    /// The cut waits for the first event ID, without which the client cannot resume.
    async fn read(&mut self, reply: &mut Reply, cut: Cut) -> Ended {
        let opened = Instant::now();
        let mut events = 0;
        loop {
            let cut_at = match cut {
                Cut::AfterTime(time) if self.last_id.is_some() => opened + time,
                _ => self.deadline(),
            };
            match timeout_at(cut_at.min(self.deadline()), reply.next()).await {
                Ok(Ok(Some(event))) => self.take(event),
                Ok(Ok(None) | Err(_)) => return Ended::ByServer,
                Err(_) if Instant::now() < self.deadline() => return Ended::Cut,
                Err(_) => return Ended::Silent,
            }
            events += 1;
            if self.check.is_answered() {
                let whole = self.linger(reply).await;
                return Ended::Answered { whole };
            }
            if cut == Cut::AfterEvents(events) && self.last_id.is_some() {
                return Ended::Cut;
            }
        }
    }

    async fn linger(&mut self, reply: &mut Reply) -> bool {
        let until = Instant::now() + LINGER;
        loop {
            match timeout_at(until, reply.next()).await {
                Ok(Ok(Some(event))) => self.take(event),
                Ok(Ok(None)) => return true,
                Ok(Err(_)) | Err(_) => return false,
            }
        }
    }

    fn take(&mut self, event: Event) {
        if !self.session.note(&event) {
            let id = event.id.as_deref().unwrap_or_default();
            self.check
                .find(Violation::RepeatedId, format!("event id {id}"));
        }
        if let Some(retry_ms) = event.retry_ms {
            self.retry = Some(Duration::from_millis(retry_ms));
        }
        if !event.data.is_empty() {
            self.check.message(&event.data);
        }
        if let Some(id) = event.id {
            self.record.push((id.clone(), digest(&event.data)));
            self.last_id = Some(id);
        }
    }

    /// Drops the connection at once, or after a while without reading.
    fn leave(&mut self, reply: Reply) {
        let half_open = self.chance.half_open();
        self.session.tally.count(|counts| {
            counts.drops += 1;
            counts.half_open += u64::from(half_open.is_some());
        });
        if let Some(time) = half_open {
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                drop(reply);
            });
        }
    }

    async fn stay_away(&mut self) {
        match self.chance.pause() {
            Pause::For(time) => tokio::time::sleep(time).await,
            Pause::PastTheEnd => {
                tokio::time::sleep_until(self.began + self.job.length() + PAST_THE_END).await;
                self.session.tally.count(|counts| counts.late_resumes += 1);
            }
        }
    }

    /// Reports a finding and returns `None` if the stream cannot be resumed.
    async fn resume(&mut self) -> Option<Reply> {
        let Some(last_id) = self.last_id.clone() else {
            let why = "the stream ended before any event id";
            self.check.find(Violation::MissingAnswer, why);
            return None;
        };
        let deadline = self.deadline();
        let listening = self.session.listen(Some(&last_id), self.chance, deadline);
        match listening.await {
            Ok(reply) => {
                self.session.tally.count(|counts| counts.resumes += 1);
                Some(reply)
            }
            Err(failure) => {
                let detail = format!("after event {last_id}: {failure}");
                self.check.find(Violation::RefusedResume, detail);
                None
            }
        }
    }
}

fn no_answer() -> Failure {
    Failure::Transport("no answer to a call".to_owned())
}

pub(super) fn unfinished() -> Finding {
    Finding::new(
        Violation::MissingAnswer,
        "still open when the run had to end",
    )
}
