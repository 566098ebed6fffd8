use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use http::StatusCode;
use tokio::time::sleep;

use super::session::Session;
use super::wire::{Events, Exchange, Outcome, describe};
use super::{LONGEST_PAUSE, PAUSE, Shared};
use crate::history::{Channel, Ended, Message, Step};

impl Shared {
    /// Retries while a refusal or a break is temporary. The error is `true` if the session is gone.
    pub(super) async fn reopen(
        &self,
        session: &Session,
        channel: Channel,
        after: Option<&str>,
    ) -> Result<(String, Events), bool> {
        loop {
            let Exchange { tag, outcome } = self.wire.get(&session.id, after).await;
            let pause = match outcome {
                Outcome::Stream(events) => {
                    self.recorder.note(Step::Listening {
                        channel,
                        session: session.id.clone(),
                        after: after.map(str::to_owned),
                    });
                    return Ok((tag, events));
                }
                Outcome::Refused(refusal) if refusal.status == StatusCode::NOT_FOUND => {
                    self.forgotten(session, channel).await;
                    return Err(true);
                }
                Outcome::Refused(refusal) => {
                    self.refused(channel, &refusal);
                    refusal.passes_after().ok_or(false)?
                }
                Outcome::Broken(cause) => {
                    self.ended(channel, Ended::Broken, &tag, false, &cause);
                    PAUSE
                }
                Outcome::Accepted | Outcome::Json { .. } => {
                    self.ended(channel, Ended::Orderly, &tag, true, "no stream");
                    return Err(false);
                }
            };
            sleep(pause).await;
        }
    }
}

pub(super) async fn listen(shared: &Arc<Shared>) {
    loop {
        let session = shared.session().await;
        let mut listener = Listener {
            shared,
            session,
            cursor: None,
            retry: PAUSE,
        };
        listener.run().await;
        sleep(PAUSE).await;
    }
}

struct Listener<'a> {
    shared: &'a Arc<Shared>,
    session: Session,
    cursor: Option<String>,
    retry: Duration,
}

impl Listener<'_> {
    async fn run(&mut self) {
        let channel = Channel::Standalone;
        loop {
            let cursor = self.cursor.clone();
            let opened = self
                .shared
                .reopen(&self.session, channel, cursor.as_deref());
            let Ok((tag, mut events)) = opened.await else {
                return;
            };
            let (how, cause) = self.read(&mut events).await;
            self.shared.ended(channel, how, &tag, true, &cause);
            sleep(self.retry).await;
        }
    }

    async fn read(&mut self, events: &mut Events) -> (Ended, String) {
        loop {
            let event = match events.next().await {
                Some(Ok(event)) => event,
                Some(Err(error)) => return (Ended::Broken, describe(&error)),
                None => return (Ended::Orderly, "by the server".to_owned()),
            };
            if let Some(retry) = event.retry {
                self.retry = Duration::from_millis(retry).min(LONGEST_PAUSE);
            }
            let Some(data) = event.data else {
                continue;
            };
            let message = Message::read(&data);
            self.shared.answer(&self.session, &message);
            if event.id.is_some() {
                self.cursor.clone_from(&event.id);
            }
            self.shared.recorder.note(Step::Received {
                channel: Channel::Standalone,
                id: event.id,
                message,
            });
        }
    }
}
