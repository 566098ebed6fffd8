use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use shoal_ports::SessionId;
use shoal_protocol::{RawJson, RequestId};

use crate::call_end::ends_call;
use crate::places::{QuotaPlaces, SharedPlaces};

type AnswerKey = (SessionId, RequestId);
type AwaitedCalls = Mutex<HashMap<AnswerKey, SharedPlaces, RandomState>>;

/// Calls that are answered on their session's single stream, and their quota places.
#[derive(Clone, Default)]
pub(crate) struct AwaitedAnswers(Arc<AwaitedCalls>);

pub(crate) struct ExpectedAnswer {
    all: AwaitedAnswers,
    key: AnswerKey,
    places: SharedPlaces,
}

impl AwaitedAnswers {
    /// `None` if a running call has the same id, because the session refuses the new call.
    pub(crate) fn expect(
        &self,
        session: &SessionId,
        request: &RequestId,
        places: &SharedPlaces,
    ) -> Option<ExpectedAnswer> {
        let key = (session.clone(), request.clone());
        let mut calls = self.0.lock();
        if calls.contains_key(&key) {
            return None;
        }
        calls.insert(key.clone(), Arc::clone(places));
        drop(calls);
        Some(ExpectedAnswer {
            all: self.clone(),
            key,
            places: Arc::clone(places),
        })
    }

    /// Frees the answered call's places before the message is written, so that the client's next
    /// call has room.
    pub(crate) fn passed(&self, session: &SessionId, text: &Bytes) {
        if self.0.lock().is_empty() || !ends_call(text) {
            return;
        }
        let answer = RawJson::from_valid(text.clone());
        let id = answer.member("id");
        let Some(Ok(id)) = id.map(|id| RequestId::from_json(&id)) else {
            return;
        };
        let places = self.0.lock().remove(&(session.clone(), id));
        if let Some(places) = places {
            *places.lock() = QuotaPlaces::default();
        }
    }
}

impl Drop for ExpectedAnswer {
    fn drop(&mut self) {
        let mut calls = self.all.0.lock();
        let own = calls.get(&self.key);
        if own.is_some_and(|places| Arc::ptr_eq(places, &self.places)) {
            calls.remove(&self.key);
        }
    }
}
