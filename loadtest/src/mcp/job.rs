//! Verified calls of `long_job`: every step must come once and in order, then the result.

use std::time::Duration;

use shoal_testkit::check::{Ledger, Rules, Violation, check};
use shoal_testkit::history::{Channel, Entry, History, Message, Step, Tool, Work};
use tokio::time::sleep;

use super::client::Client;
use crate::connection::Reply;
use crate::failure::Failure;

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

    /// Calls `long_job`. The caller reads the answer through the watch.
    pub(crate) async fn start(self, client: &mut Client) -> Result<(Reply, Watch), Failure> {
        let id = client.next_id();
        let Self { steps, interval } = self;
        let params = format!(
            r#""name":"long_job","arguments":{{"steps":{steps},"interval_ms":{}}}"#,
            interval.as_millis()
        );
        let meta = format!(r#""progressToken":{id}"#);
        let starting = client.start(id, "tools/call", "long_job", &params, &meta);
        Ok((starting.await?, Watch::new(id, steps, interval)))
    }

    /// Makes a call whose stream must not break.
    pub(crate) async fn call(self, client: &mut Client) -> Result<(), Failure> {
        let (mut reply, mut watch) = self.start(client).await?;
        watch.read(&mut reply, Duration::ZERO).await?;
        client.give_back(reply);
        watch.finish()
    }
}

/// Records the events of one call, for the check of histories.
pub(crate) struct Watch {
    request: u64,
    history: History,
    answered: bool,
}

impl Watch {
    fn new(request: u64, steps: usize, interval: Duration) -> Self {
        let work = Work {
            call: request,
            tool: Tool::Job,
            nonce: String::new(),
            steps: u32::try_from(steps).unwrap_or(u32::MAX),
            ms: interval.as_millis() as u64,
        };
        let mut watch = Self {
            request,
            history: History::default(),
            answered: false,
        };
        watch.note(Step::Sent {
            request,
            session: String::new(),
            work,
        });
        watch
    }

    fn note(&mut self, step: Step) {
        let at = Duration::ZERO;
        self.history.entries.push(Entry { at, step });
    }

    /// Reads to the end of the body, with a pause after each event.
    pub(crate) async fn read(&mut self, reply: &mut Reply, pause: Duration) -> Result<(), Failure> {
        while let Some(event) = reply.next().await? {
            let message = Message::read(&event.data);
            self.answered |=
                matches!(message, Message::Response { request, .. } if request == self.request);
            self.note(Step::Received {
                channel: Channel::Request(self.request),
                id: event.id,
                message,
            });
            if !pause.is_zero() {
                sleep(pause).await;
            }
        }
        Ok(())
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.answered
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.finish_without(None)
    }

    /// Ends the check of a stream that was cut before its response. Missing messages therefore do
    /// not count.
    pub(crate) fn finish_cut(self) -> Result<(), Failure> {
        self.finish_without(Some(Violation::Lost))
    }

    fn finish_without(self, excused: Option<Violation>) -> Result<(), Failure> {
        let verdict = check(&[self.history], &Ledger::default(), &Rules::default());
        let findings = verdict.findings.iter();
        let mut findings = findings.filter(|finding| Some(finding.violation) != excused);
        let Some(first) = findings.next() else {
            return Ok(());
        };
        let (what, detail, more) = (first.violation, &first.detail, findings.count());
        Err(Failure::Wrong(format!("{what:?}: {detail} ({more} more)")))
    }
}
