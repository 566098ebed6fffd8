use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::shared::{Became, Era, Shared};
use super::stream::Stream;
use super::wire::{Answered, Exchange, REVISION};
use super::{End, Leave, PAUSE, accepted, thinking};
use crate::history::{Channel, Ended, History, Message, Step, Work};

const LONGEST_REPLAY: Duration = Duration::from_secs(10);

impl Shared {
    pub(super) async fn session(&self) -> String {
        let mut slot = self.session.lock().await;
        if let Some(session) = &*slot {
            return session.clone();
        }
        self.recorder.note(Step::Opening);
        let session = loop {
            match self.try_open().await {
                Some(session) => break session,
                None => sleep(PAUSE).await,
            }
        };
        self.recorder.note(Step::Opened {
            session: session.clone(),
        });
        slot.insert(session).clone()
    }

    /// Requests the stream of the last call again, after the event at this share of its length.
    pub(super) async fn replay(self: &Arc<Self>, share: f64) {
        let stream = self.recorder.look(History::last_stream);
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
        let ending = || self.wire.delete(&session);
        // A session that cannot be ended expires.
        let _ = self.exchange(Channel::Opening, None, ending).await;
    }

    pub(super) async fn request(
        self: &Arc<Self>,
        work: &Work,
        hang_up: Duration,
        leaves: &mut (dyn Iterator<Item = Leave> + Send),
    ) -> Became {
        let session = self.session().await;
        let request = self.sent(&session, work);
        let channel = Channel::Request(request);
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
        let posted = self.wire.post(Some(&session), &message);
        let exchange = timeout(hang_up, posted).await.ok();
        if exchange.as_ref().is_some_and(Exchange::is_gone) {
            self.forgotten(&session, channel).await;
            return Became::Over(End::Forgotten);
        }
        match self.answered(channel, work, exchange) {
            Ok((tag, Answered::Stream(events))) => {
                let stream = Stream::new(self, &session, channel, leaves);
                let end = stream.follow(Some((tag, events))).await;
                end.map_or(Became::without_answer(work), Became::Over)
            }
            Ok((_, answered)) => {
                let message = Message::read(&answered.body().unwrap_or_default());
                self.take(&session, channel, None, message);
                Became::Over(End::Answered)
            }
            Err(became) => became,
        }
    }

    /// Records a message, and answers it if it is a request. Returns `true` for the answer to the channel's request.
    pub(super) fn take(
        self: &Arc<Self>,
        session: &str,
        channel: Channel,
        id: Option<String>,
        message: Message,
    ) -> bool {
        let answers =
            matches!(&message, Message::Response { request, .. } if channel.is_of(*request));
        if !matches!(channel, Channel::Replay(_)) {
            self.answer(session, &message);
        }
        self.received(channel, id, message);
        answers
    }

    fn answer(self: &Arc<Self>, session: &str, message: &Message) {
        let (id, result, question) = match message {
            Message::Question { id, text } => (id, accepted(text), text.clone()),
            Message::Request { id, method } if method == "ping" => (id, json!({}), method.clone()),
            _ => return,
        };
        let response = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        let (shared, session) = (self.clone(), session.to_owned());
        let reply = async move { shared.reply(&session, response, question).await };
        let mut replies = self.replies.lock().unwrap_or_else(PoisonError::into_inner);
        while replies.try_join_next().is_some() {}
        replies.spawn(reply);
    }

    /// Repeating is safe, because the response has an id.
    async fn reply(&self, session: &str, response: Value, question: String) {
        sleep(thinking(&question)).await;
        let replying = || self.wire.post(Some(session), &response);
        match self.exchange(Channel::Reply, Some(session), replying).await {
            Ok((_, Answered::Empty)) => self.recorder.note(Step::Replied { question }),
            Ok((tag, _)) => self.ended(Channel::Reply, Ended::Orderly, &tag, true, "not 202"),
            Err(_) => {}
        }
    }

    async fn forgotten(&self, session: &str, channel: Channel) {
        self.recorder.note(Step::Forgotten {
            session: session.to_owned(),
            channel,
        });
        let mut slot = self.session.lock().await;
        slot.take_if(|known| known == session);
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
        let opened = self.open_with(None, &initialize).await?;
        let Answered::Json {
            session: Some(session),
            ..
        } = opened
        else {
            self.ended(Channel::Opening, Ended::Orderly, "", true, "no session");
            return None;
        };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.open_with(Some(&session), &initialized).await?;
        if let Era::Legacy(Some(uri)) = self.era {
            let subscribe = json!({ "jsonrpc": "2.0", "id": 0, "method": "resources/subscribe", "params": { "uri": uri } });
            self.open_with(Some(&session), &subscribe).await?;
        }
        Some(session)
    }

    async fn open_with(&self, session: Option<&str>, message: &Value) -> Option<Answered> {
        let opening = || self.wire.post(session, message);
        let opened = self.exchange(Channel::Opening, None, opening).await;
        opened.ok().map(|(_, answered)| answered)
    }

    /// Repeats an exchange while it breaks or is refused for now.
    pub(super) async fn exchange<F: Future<Output = Exchange>>(
        &self,
        channel: Channel,
        session: Option<&str>,
        send: impl Fn() -> F,
    ) -> Result<(String, Answered), End> {
        loop {
            let exchange = send().await;
            if let Some(session) = session
                && exchange.is_gone()
            {
                self.forgotten(session, channel).await;
                return Err(End::Forgotten);
            }
            let Exchange { tag, outcome } = exchange;
            match outcome {
                Ok(answered) => return Ok((tag, answered)),
                Err(trouble) => {
                    let pause = self.failed(channel, &tag, &trouble);
                    sleep(pause.ok_or(End::GivenUp)?).await;
                }
            }
        }
    }
}
