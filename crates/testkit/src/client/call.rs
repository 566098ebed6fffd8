use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use http::StatusCode;
use serde_json::{Value, json};
use sse_stream::Sse;
use tokio::time::{sleep, timeout};

use super::session::Session;
use super::wire::{Events, Exchange, Outcome, describe};
use super::{End, LONGEST_PAUSE, Leave, PAUSE, Shared};
use crate::history::{Channel, Ended, Message, Step, Work};

const LINGER: Duration = Duration::from_secs(1);

pub(super) struct Call<'a> {
    shared: &'a Arc<Shared>,
    work: Work,
    leave: Option<Leave>,
}

struct Attempt<'a> {
    call: &'a Call<'a>,
    session: Session,
    request: u64,
    channel: Channel,
    cursor: Option<String>,
    retry: Duration,
    events: usize,
    left: bool,
    away: Duration,
}

enum Became {
    Over(End),
    /// The request had no effect, and is sent again after a pause.
    Nothing(Duration),
}

enum Reading {
    Answered,
    Ended(Ended, String),
}

impl<'a> Call<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, work: Work, leave: Option<Leave>) -> Self {
        Self {
            shared,
            work,
            leave,
        }
    }

    pub(super) async fn run(self) -> End {
        loop {
            let session = self.shared.session().await;
            let request = self.shared.requests.fetch_add(1, Ordering::Relaxed);
            let attempt = Attempt {
                call: &self,
                session,
                request,
                channel: Channel::Request(request),
                cursor: None,
                retry: PAUSE,
                events: 0,
                left: false,
                away: Duration::ZERO,
            };
            match attempt.run().await {
                Became::Over(end) => return end,
                Became::Nothing(pause) => sleep(pause).await,
            }
        }
    }

    fn no_way_back(&self) -> Became {
        if self.work.tool.is_safe_to_repeat() {
            Became::Nothing(PAUSE)
        } else {
            Became::Over(End::GivenUp)
        }
    }
}

impl Attempt<'_> {
    async fn run(self) -> Became {
        let shared = self.call.shared;
        shared.recorder.note(Step::Sent {
            request: self.request,
            session: self.session.id.clone(),
            work: self.call.work.clone(),
        });
        let message = self.message();
        let posted = shared.wire.post(Some(&self.session.id), &message);
        let exchange = match self.call.leave {
            Some(Leave::HangUp { after }) => timeout(after, posted).await.ok(),
            _ => Some(posted.await),
        };
        let Some(Exchange { tag, outcome }) = exchange else {
            shared.ended(self.channel, Ended::Willingly, "", false, "hung up");
            return Became::Over(End::GivenUp);
        };
        match outcome {
            Outcome::Broken(cause) => {
                shared.ended(self.channel, Ended::Broken, &tag, false, &cause);
                self.call.no_way_back()
            }
            Outcome::Refused(refusal) if refusal.status == StatusCode::NOT_FOUND => {
                shared.forgotten(&self.session, self.channel).await;
                Became::Over(End::Forgotten)
            }
            Outcome::Refused(refusal) => {
                shared.refused(self.channel, &refusal);
                match refusal.passes_after() {
                    Some(pause) => Became::Nothing(pause),
                    None => Became::Over(End::GivenUp),
                }
            }
            Outcome::Accepted => {
                shared.ended(self.channel, Ended::Orderly, &tag, true, "an empty answer");
                Became::Over(End::GivenUp)
            }
            Outcome::Json { body, .. } => {
                self.received(None, Message::read(&body));
                Became::Over(End::Answered)
            }
            Outcome::Stream(events) => self.follow(tag, events).await,
        }
    }

    fn message(&self) -> Value {
        let work = &self.call.work;
        json!({
            "jsonrpc": "2.0",
            "id": self.request,
            "method": "tools/call",
            "params": {
                "name": work.tool.name(),
                "arguments": work.arguments(),
                "_meta": { "progressToken": self.request },
            },
        })
    }

    async fn follow(mut self, mut tag: String, mut events: Events) -> Became {
        loop {
            match self.read(&mut events).await {
                Reading::Answered => return Became::Over(End::Answered),
                Reading::Ended(how, cause) => {
                    let shared = self.call.shared;
                    shared.ended(self.channel, how, &tag, true, &cause);
                }
            }
            drop(events);
            let Some(cursor) = self.cursor.clone() else {
                return self.call.no_way_back();
            };
            sleep(self.retry + std::mem::take(&mut self.away)).await;
            (tag, events) = match self.resume(&cursor).await {
                Ok(resumed) => resumed,
                Err(end) => return Became::Over(end),
            };
        }
    }

    async fn read(&mut self, events: &mut Events) -> Reading {
        loop {
            match events.next().await {
                Some(Ok(event)) => {
                    if self.take(event) {
                        self.linger(events).await;
                        return Reading::Answered;
                    }
                }
                Some(Err(error)) => return Reading::Ended(Ended::Broken, describe(&error)),
                None => return Reading::Ended(Ended::Orderly, "before the answer".to_owned()),
            }
            if let Some(Leave::Return { after, away }) = self.call.leave
                && self.events >= after
                && !self.left
                && self.cursor.is_some()
            {
                self.left = true;
                self.away = away;
                return Reading::Ended(Ended::Willingly, "left".to_owned());
            }
        }
    }

    async fn linger(&mut self, events: &mut Events) {
        let _ = timeout(LINGER, async {
            while let Some(Ok(event)) = events.next().await {
                self.take(event);
            }
        })
        .await;
    }

    /// Returns `true` if the event is the answer.
    fn take(&mut self, event: Sse) -> bool {
        if let Some(retry) = event.retry {
            self.retry = Duration::from_millis(retry).min(LONGEST_PAUSE);
        }
        let Some(data) = event.data else {
            return false;
        };
        if event.id.is_some() {
            self.cursor.clone_from(&event.id);
        }
        self.events += 1;
        self.received(event.id, Message::read(&data))
    }

    fn received(&self, id: Option<String>, message: Message) -> bool {
        let shared = self.call.shared;
        let request = self.request;
        let answers = matches!(&message, Message::Response { request: to, .. } if *to == request);
        shared.answer(&self.session, &message);
        shared.recorder.note(Step::Received {
            channel: self.channel,
            id,
            message,
        });
        answers
    }

    async fn resume(&self, cursor: &str) -> Result<(String, Events), End> {
        let resumed = self
            .call
            .shared
            .reopen(&self.session, self.channel, Some(cursor));
        resumed
            .await
            .map_err(|gone| if gone { End::Forgotten } else { End::GivenUp })
    }
}
