//! State that tools keep in a session. A change counts once it is stored.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use shoal_ports::{CallId, StateRequest};
use shoal_protocol::{Outcome, RawJson, RawObject, RpcError};

use super::{Effect, SessionMachine};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    values: BTreeMap<String, RawJson>,
    /// Each running call's last write. If the owner is lost, the worker sends this write to the next owner again.
    done: BTreeMap<CallId, u64>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptLimits {
    pub(crate) value: usize,
    pub(crate) total: usize,
    pub(crate) keys: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Change {
    call: CallId,
    writing: u64,
    key: String,
    value: Option<RawJson>,
}

impl Kept {
    fn answer(&self, request: &StateRequest) -> RawJson {
        let mut answer = RawObject::default();
        match request {
            StateRequest::Get { key } => {
                if let Some(value) = self.values.get(key) {
                    answer.set("value", value.clone());
                }
            }
            StateRequest::Keys => {
                let keys: Vec<&String> = self.values.keys().collect();
                answer.set("keys", RawJson::of(&keys));
            }
            StateRequest::Set { .. } => {}
        }
        answer.to_json()
    }

    /// Above a limit on bytes that was lowered, still allows a value that makes the state smaller.
    fn check(&self, key: &str, value: &RawJson, limits: KeptLimits) -> Result<(), RpcError> {
        if value.len() > limits.value {
            return Err(RpcError::invalid_params(format!(
                "the value under {key:?} has {} bytes; a session keeps values of up to {} bytes",
                value.len(),
                limits.value
            )));
        }
        let former = self.values.get(key);
        if former.is_none() && self.values.len() >= limits.keys {
            return Err(RpcError::invalid_request(format!(
                "the session keeps {} values, which is its limit; remove some",
                self.values.len()
            )));
        }
        let size = |key: &str, value: &RawJson| key.len() + value.len();
        let before: usize = self.values.iter().map(|(key, it)| size(key, it)).sum();
        let after = before - former.map_or(0, |it| size(key, it)) + size(key, value);
        if after > limits.total && after > before {
            return Err(RpcError::invalid_request(format!(
                "the session would keep {after} bytes; {} are its limit; remove some values",
                limits.total
            )));
        }
        Ok(())
    }

    fn make(&mut self, change: Change) {
        match change.value {
            Some(value) => self.values.insert(change.key, value),
            None => self.values.remove(&change.key),
        };
        self.done.insert(change.call, change.writing);
    }

    fn forget_others(&mut self, runs: impl Fn(&CallId) -> bool) {
        self.done.retain(|call, _| runs(call));
    }
}

impl SessionMachine {
    /// For a write, returns the record to store. After it is stored, and before another record is,
    /// [`SessionMachine::keep`] must follow.
    pub(super) fn state_asked(&mut self, call: CallId, asked: StateRequest) -> Effect {
        if self.admitted.running(call).is_none() {
            return refuse(RpcError::internal("the call has ended"));
        }
        if let Err(error) = asked.check() {
            return refuse(error);
        }
        let StateRequest::Set {
            key,
            value,
            writing,
        } = asked
        else {
            return Effect::StateAnswer(Outcome::Result(self.record.kept.answer(&asked)));
        };
        if self.record.kept.done.get(&call) == Some(&writing) {
            return Effect::StateAnswer(kept());
        }
        if let Some(value) = &value
            && let Err(error) = self.record.kept.check(&key, value, self.limits.kept)
        {
            return refuse(error);
        }
        let change = Change {
            call,
            writing,
            key,
            value,
        };
        let record = self.record_after(change.clone());
        Effect::Keep { record, change }
    }

    pub(super) fn keep(&mut self, change: Change) {
        self.record.kept.make(change);
    }

    pub(super) fn forget_writings(&mut self) {
        let admitted = &self.admitted;
        let runs = |call: &CallId| admitted.running(*call).is_some();
        self.record.kept.forget_others(runs);
    }

    fn record_after(&mut self, change: Change) -> Bytes {
        self.forget_writings();
        let mut record = self.record.clone();
        record.kept.make(change);
        record.to_bytes()
    }
}

pub(crate) fn kept() -> Outcome {
    Outcome::Result(RawJson::from_static("{}"))
}

fn refuse(error: RpcError) -> Effect {
    Effect::StateAnswer(Outcome::Error(error))
}

#[cfg(test)]
mod tests;
