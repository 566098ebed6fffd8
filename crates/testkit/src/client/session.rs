use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::wire::{Exchange, Outcome, REVISION, Refusal};
use super::{PAUSE, Shared};
use crate::history::{Channel, Ended, Step};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) id: String,
    number: u64,
}

impl Shared {
    pub(super) async fn session(&self) -> Session {
        let mut slot = self.session.lock().await;
        if let Some(session) = &*slot {
            return session.clone();
        }
        self.recorder.note(Step::Opening);
        let id = loop {
            if let Some(id) = self.try_open().await {
                break id;
            }
        };
        let session = Session {
            id: id.clone(),
            number: self.sessions.fetch_add(1, Ordering::Relaxed),
        };
        self.recorder.note(Step::Opened { session: id });
        *slot = Some(session.clone());
        session
    }

    pub(super) async fn forgotten(&self, session: &Session, channel: Channel) {
        self.recorder.note(Step::Forgotten {
            session: session.id.clone(),
            channel,
        });
        let mut slot = self.session.lock().await;
        if slot.as_ref() == Some(session) {
            *slot = None;
        }
    }

    pub(super) fn ended(
        &self,
        channel: Channel,
        how: Ended,
        tag: &str,
        answered: bool,
        cause: &str,
    ) {
        self.recorder.note(Step::Ended {
            channel,
            how,
            tag: tag.to_owned(),
            answered,
            cause: cause.to_owned(),
        });
    }

    pub(super) fn refused(&self, channel: Channel, refusal: &Refusal) {
        self.recorder.note(refusal.step(channel));
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
        match self.exchange_opening(None, &initialize).await? {
            Outcome::Json {
                session: Some(id), ..
            } => {
                let initialized =
                    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
                self.exchange_opening(Some(&id), &initialized).await?;
                Some(id)
            }
            _ => {
                self.ended(Channel::Opening, Ended::Orderly, "", true, "no session");
                sleep(PAUSE).await;
                None
            }
        }
    }

    /// Returns `None`, after a pause, if the exchange failed.
    async fn exchange_opening(&self, session: Option<&str>, message: &Value) -> Option<Outcome> {
        let Exchange { tag, outcome } = self.wire.post(session, message).await;
        let pause = match outcome {
            Outcome::Broken(cause) => {
                self.ended(Channel::Opening, Ended::Broken, &tag, false, &cause);
                PAUSE
            }
            Outcome::Refused(refusal) => {
                self.refused(Channel::Opening, &refusal);
                refusal.passes_after().unwrap_or(PAUSE)
            }
            fine => return Some(fine),
        };
        sleep(pause).await;
        None
    }
}
