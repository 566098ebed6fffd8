use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::common::{Became, Common};
use super::stream::Stream;
use super::wire::{Exchange, Messages, Outcome, REVISION};
use super::{End, Leave, PAUSE, thinking};
use crate::history::{Channel, Ended, History, Message, Step, Work, reply_to};

const LONGEST_REPLAY: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) id: String,
    number: u64,
}

/// The client's session, which is replaced when the server has lost it.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) common: Common,
    subscription: Option<&'static str>,
    session: Mutex<Option<Session>>,
    sessions: AtomicU64,
    replies: std::sync::Mutex<JoinSet<()>>,
}

impl Shared {
    pub(super) fn new(common: Common, subscription: Option<&'static str>) -> Self {
        Self {
            common,
            subscription,
            session: Mutex::default(),
            sessions: AtomicU64::new(1),
            replies: std::sync::Mutex::default(),
        }
    }

    pub(super) async fn session(&self) -> Session {
        let mut slot = self.session.lock().await;
        if let Some(session) = &*slot {
            return session.clone();
        }
        self.common.recorder.note(Step::Opening);
        let id = loop {
            match self.try_open().await {
                Some(id) => break id,
                None => sleep(PAUSE).await,
            }
        };
        let session = Session {
            id: id.clone(),
            number: self.sessions.fetch_add(1, Ordering::Relaxed),
        };
        self.common.recorder.note(Step::Opened { session: id });
        *slot = Some(session.clone());
        session
    }

    /// Requests the stream of the last call again, after the event at this share of its length.
    pub(super) async fn replay(self: &Arc<Self>, share: f64) {
        let stream = self.common.recorder.look(History::last_stream);
        let Some((request, ids)) = stream.filter(|(_, ids)| ids.len() > 1) else {
            return;
        };
        let after = (share * (ids.len() - 1) as f64) as usize;
        let session = self.session().await;
        let (channel, mut stays) = (Channel::Replay(request), std::iter::empty());
        let stream = Stream::new(self, &session, channel, &mut stays).after(&ids[after]);
        let _ = timeout(LONGEST_REPLAY, stream.follow(None)).await;
    }

    pub(super) async fn end(&self) {
        let Some(session) = self.session.lock().await.take() else {
            return;
        };
        let ending = || self.common.wire.delete(&session.id);
        // A session that cannot be ended expires.
        let _ = self.exchange(Channel::Opening, None, ending).await;
    }

    pub(super) async fn call(
        self: &Arc<Self>,
        work: &Work,
        leaves: &mut (dyn Iterator<Item = Leave> + Send),
    ) -> End {
        let mut leaves = leaves.peekable();
        let hang_up = match leaves.peek() {
            Some(Leave::HangUp { after }) => Some(*after),
            _ => None,
        };
        loop {
            match self.request(work, hang_up, &mut leaves).await {
                Became::Over(end) => return end,
                Became::Nothing(pause) => sleep(pause).await,
            }
        }
    }

    async fn request(
        self: &Arc<Self>,
        work: &Work,
        hang_up: Option<Duration>,
        leaves: &mut (dyn Iterator<Item = Leave> + Send),
    ) -> Became {
        let session = self.session().await;
        let request = self.common.next_request();
        let channel = Channel::Request(request);
        self.common.recorder.note(Step::Sent {
            request,
            session: session.id.clone(),
            work: work.clone(),
        });
        let message = json!({
            "jsonrpc": "2.0",
            "id": request,
            "method": "tools/call",
            "params": {
                "name": work.tool.name(),
                "arguments": work.arguments(),
                "_meta": { "progressToken": request },
            },
        });
        let posted = self.common.wire.post(Some(&session.id), &message);
        let exchange = match hang_up {
            Some(after) => timeout(after, posted).await.ok(),
            None => Some(posted.await),
        };
        if let Some(exchange) = &exchange
            && exchange.is_gone()
        {
            self.forgotten(&session, channel).await;
            return Became::Over(End::Forgotten);
        }
        match self.common.answered(channel, work, exchange) {
            Ok((tag, Messages::Stream(events))) => {
                let stream = Stream::new(self, &session, channel, leaves);
                let end = stream.follow(Some((tag, events))).await;
                end.map_or(Became::without_answer(work), Became::Over)
            }
            Ok((_, Messages::One(body))) => {
                let message = Message::read(&body.unwrap_or_default());
                self.received(&session, channel, None, message);
                Became::Over(End::Answered)
            }
            Err(became) => became,
        }
    }

    /// Records a message, and answers it if it is a request. Returns `true` for the answer to the channel's request.
    pub(super) fn received(
        self: &Arc<Self>,
        session: &Session,
        channel: Channel,
        id: Option<String>,
        message: Message,
    ) -> bool {
        let answers =
            matches!(&message, Message::Response { request, .. } if channel.is_of(*request));
        if !matches!(channel, Channel::Replay(_)) {
            self.answer(session, &message);
        }
        self.common.recorder.note(Step::Received {
            channel,
            id,
            message,
        });
        answers
    }

    fn answer(self: &Arc<Self>, session: &Session, message: &Message) {
        let (id, result, question) = match message {
            Message::Question { id, text } => {
                let content = json!({ "text": reply_to(text) });
                let accepted = json!({ "action": "accept", "content": content });
                (id, accepted, text.clone())
            }
            Message::Request { id, method } if method == "ping" => (id, json!({}), method.clone()),
            _ => return,
        };
        let response = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        let (shared, session) = (self.clone(), session.clone());
        let reply = async move { shared.reply(session, response, question).await };
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        while replies.try_join_next().is_some() {}
        replies.spawn(reply);
    }

    /// Repeating is safe, because the response has an id.
    async fn reply(&self, session: Session, response: Value, question: String) {
        sleep(thinking(&question)).await;
        let replying = || self.common.wire.post(Some(&session.id), &response);
        let replied = self.exchange(Channel::Reply, Some(&session), replying);
        match replied.await {
            Ok((_, Outcome::Accepted)) => self.common.recorder.note(Step::Replied { question }),
            Ok((tag, _)) => {
                (self.common).ended(Channel::Reply, Ended::Orderly, &tag, true, "not 202");
            }
            Err(_) => {}
        }
    }

    pub(super) async fn forgotten(&self, session: &Session, channel: Channel) {
        self.common.recorder.note(Step::Forgotten {
            session: session.id.clone(),
            channel,
        });
        let mut slot = self.session.lock().await;
        if slot.as_ref() == Some(session) {
            *slot = None;
        }
    }

    async fn try_open(&self) -> Option<String> {
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "testkit", "version": env!("CARGO_PKG_VERSION") },
        });
        // Calls are numbered from 1.
        let initialize =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let Outcome::Json {
            session: Some(id), ..
        } = self.open_with(None, &initialize).await?
        else {
            (self.common).ended(Channel::Opening, Ended::Orderly, "", true, "no session");
            return None;
        };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.open_with(Some(&id), &initialized).await?;
        if let Some(uri) = self.subscription {
            let subscribe = json!({ "jsonrpc": "2.0", "id": 0, "method": "resources/subscribe", "params": { "uri": uri } });
            self.open_with(Some(&id), &subscribe).await?;
        }
        Some(id)
    }

    async fn open_with(&self, session: Option<&str>, message: &Value) -> Option<Outcome> {
        let opening = || self.common.wire.post(session, message);
        let opened = self.exchange(Channel::Opening, None, opening).await;
        opened.ok().map(|(_, outcome)| outcome)
    }

    /// Repeats an exchange while it breaks or is refused for now.
    pub(super) async fn exchange<F>(
        &self,
        channel: Channel,
        session: Option<&Session>,
        send: impl Fn() -> F,
    ) -> Result<(String, Outcome), End>
    where
        F: Future<Output = Exchange>,
    {
        loop {
            let exchange = send().await;
            if let Some(session) = session
                && exchange.is_gone()
            {
                self.forgotten(session, channel).await;
                return Err(End::Forgotten);
            }
            let Exchange { tag, outcome } = exchange;
            let pause = match outcome {
                Outcome::Broken(cause) => {
                    self.common
                        .ended(channel, Ended::Broken, &tag, false, &cause);
                    PAUSE
                }
                Outcome::Refused(refusal) => {
                    self.common.refused(channel, &refusal);
                    refusal.passes_after().ok_or(End::GivenUp)?
                }
                answered => return Ok((tag, answered)),
            };
            sleep(pause).await;
        }
    }
}
