use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::connection::{Event, Reply};
use super::shared::Shared;
use super::wire::Answered;
use super::{End, LONGEST_PAUSE, Leave, PAUSE};
use crate::history::{Channel, Ended, Message, Step};

/// How long a client reads on after the answer, to detect superfluous messages.
const LINGER: Duration = Duration::from_secs(1);

/// A stream of a session, which its client resumes until it has the answer.
pub(super) struct Stream<'a> {
    shared: &'a Arc<Shared>,
    session: &'a str,
    channel: Channel,
    leaves: &'a mut (dyn Iterator<Item = Leave> + Send),
    cursor: Option<String>,
    retry: Duration,
    unread: Vec<Reply>,
}

impl<'a> Stream<'a> {
    pub(super) fn new(
        shared: &'a Arc<Shared>,
        session: &'a str,
        channel: Channel,
        leaves: &'a mut (dyn Iterator<Item = Leave> + Send),
    ) -> Self {
        Self {
            shared,
            session,
            channel,
            leaves,
            cursor: None,
            retry: PAUSE,
            unread: Vec::new(),
        }
    }

    pub(super) fn after(mut self, id: &str) -> Self {
        self.cursor = Some(id.to_owned());
        self
    }

    /// Reads to the answer. Returns `None` if the stream broke before any event id.
    pub(super) async fn follow(mut self, opened: Option<(String, Box<Reply>)>) -> Option<End> {
        let mut opened = opened;
        loop {
            let (tag, mut events) = match opened.take() {
                Some(opened) => opened,
                None if self.cursor.is_none() && self.channel != Channel::Standalone => {
                    return None;
                }
                None => match self.reopen().await {
                    Ok(reopened) => reopened,
                    Err(end) => return Some(end),
                },
            };
            let leave = self.leaves.next();
            let Some((how, cause)) = self.read(&mut events, leave).await else {
                self.shared.wire.give_back(*events);
                return Some(End::Answered);
            };
            (self.shared).ended(self.channel, how, &tag, true, &cause);
            self.shared.wire.move_on();
            let (pause, unread) = match leave {
                Some(Leave::Return { away, unread, .. }) if how == Ended::Willingly => {
                    (away, unread)
                }
                _ => (self.retry, false),
            };
            match unread {
                true => self.unread.push(*events),
                false => drop(events),
            }
            sleep(pause).await;
        }
    }

    /// Returns `None` after the answer.
    async fn read(&mut self, events: &mut Reply, leave: Option<Leave>) -> Option<(Ended, String)> {
        let opened = Instant::now();
        let mut left = usize::MAX;
        let mut until = None;
        if let Some(Leave::Return { after, within, .. }) = leave {
            (left, until) = (after, opened.checked_add(within));
        }
        loop {
            if left == 0 && self.cursor.is_some() {
                return Some((Ended::Willingly, "left".to_owned()));
            }
            let next = match until {
                Some(until) if self.cursor.is_some() => timeout_at(until, events.next()).await,
                _ => Ok(events.next().await),
            };
            match next {
                Ok(Ok(Some(event))) => {
                    left = left.saturating_sub(usize::from(!event.data.is_empty()));
                    if self.take(event) {
                        self.linger(events).await;
                        return None;
                    }
                }
                Ok(Ok(None)) => return Some((Ended::Orderly, "before the answer".to_owned())),
                Ok(Err(failure)) => return Some((Ended::Broken, failure.to_string())),
                Err(_) => return Some((Ended::Willingly, "left".to_owned())),
            }
        }
    }

    async fn linger(&mut self, events: &mut Reply) {
        let _ = timeout(LINGER, async {
            while let Ok(Some(event)) = events.next().await {
                self.take(event);
            }
        })
        .await;
    }

    /// Returns `true` if the event is the answer.
    fn take(&mut self, event: Event) -> bool {
        if let Some(retry) = event.retry_ms {
            self.retry = Duration::from_millis(retry).min(LONGEST_PAUSE);
        }
        if event.id.is_none() && event.data.is_empty() {
            return false;
        }
        if event.id.is_some() {
            self.cursor.clone_from(&event.id);
        }
        let message = Message::read(&event.data);
        (self.shared).take(self.session, self.channel, event.id, message)
    }

    async fn reopen(&mut self) -> Result<(String, Box<Reply>), End> {
        let Self {
            shared,
            session,
            channel,
            ..
        } = *self;
        let after = self.cursor.clone();
        let get = || shared.wire.get(session, after.as_deref());
        let (tag, answered) = shared.exchange(channel, Some(session), get).await?;
        let Answered::Stream(events) = answered else {
            shared.ended(channel, Ended::Orderly, &tag, true, "no stream");
            return Err(End::GivenUp);
        };
        shared.recorder.note(Step::Listening {
            channel,
            session: session.to_owned(),
            after,
        });
        Ok((tag, events))
    }
}
