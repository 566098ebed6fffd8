use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use shoal_ports::{CallId, ServerFacts, SessionId, StateRequest};
use shoal_protocol::{Outcome, RawJson, RequestId, RpcError, code};

use super::super::tests::{LIMITS, call_of, facts, ready, request};
use super::{Effect, SessionMachine};
use crate::record::Record;
use crate::state::{Admission, Input};

fn ask(session: &mut SessionMachine, call: u64, asked: StateRequest) -> Effect {
    let call = call_of(session, call);
    session.apply(Input::StateAsked { call, asked }, &facts())
}

fn carry_out(session: &mut SessionMachine, call: u64, asked: StateRequest) -> Outcome {
    match ask(session, call, asked) {
        Effect::StateAnswer(outcome) => outcome,
        Effect::Keep { change, .. } => {
            session.apply(Input::Kept(change), &facts());
            super::kept()
        }
        other => panic!("{other:?}"),
    }
}

fn set(key: &str, value: &str) -> StateRequest {
    StateRequest::set(key, Some(RawJson::of(value)))
}

fn get(key: &str) -> StateRequest {
    let key = key.to_owned();
    StateRequest::Get { key }
}

fn text(outcome: Outcome) -> String {
    match outcome {
        Outcome::Result(result) => result.as_str().to_owned(),
        Outcome::Error(error) => panic!("{error}"),
    }
}

fn error(outcome: Outcome) -> RpcError {
    match outcome {
        Outcome::Error(error) => error,
        Outcome::Result(result) => panic!("{result:?}"),
    }
}

fn with_calls(calls: u64) -> (SessionMachine, Vec<Admission>) {
    let mut session = ready();
    let calls = (0..calls).map(|call| start(&mut session, call, &facts()));
    let calls = calls.collect();
    (session, calls)
}

fn start(session: &mut SessionMachine, call: u64, facts: &ServerFacts) -> Admission {
    let started = session.apply(
        request(call, shoal_protocol::Method::ToolsCall, "{}"),
        facts,
    );
    match started {
        Effect::Run(call) => call.admission,
        other => panic!("{other:?}"),
    }
}

#[test]
fn values_are_read_written_listed_and_removed() {
    let (mut session, _calls) = with_calls(2);
    assert_eq!(text(carry_out(&mut session, 0, get("a"))), "{}");
    assert_eq!(text(carry_out(&mut session, 0, set("b", "2"))), "{}");
    assert_eq!(text(carry_out(&mut session, 1, set("a", "1"))), "{}");
    let value = text(carry_out(&mut session, 1, get("b")));
    assert_eq!(value, r#"{"value":"2"}"#);
    let keys = text(carry_out(&mut session, 0, StateRequest::Keys));
    assert_eq!(keys, r#"{"keys":["a","b"]}"#);
    carry_out(&mut session, 0, StateRequest::set("a", None));
    assert_eq!(text(carry_out(&mut session, 0, get("a"))), "{}");
}

#[test]
fn a_writing_counts_only_once_it_is_stored() {
    let (mut session, _calls) = with_calls(1);
    let Effect::Keep { record, change } = ask(&mut session, 0, set("a", "1")) else {
        panic!()
    };
    assert_eq!(text(carry_out(&mut session, 0, get("a"))), "{}");
    session.apply(Input::Kept(change), &facts());
    assert_eq!(&Record::from_bytes(&record).unwrap(), session.record());
}

#[test]
fn limits_are_kept_and_named() {
    let (mut session, _calls) = with_calls(1);
    let long = error(carry_out(&mut session, 0, set("a", "1234567")));
    assert_eq!(long.code, code::INVALID_PARAMS);
    assert!(long.message.contains("9 bytes"), "{long}");
    let nameless = error(carry_out(&mut session, 0, set("", "1")));
    assert_eq!(nameless.code, code::INVALID_PARAMS);
    for key in ["a", "b"] {
        carry_out(&mut session, 0, set(key, "123456"));
    }
    let full = error(carry_out(&mut session, 0, set("c", "12345")));
    assert_eq!(full.code, code::INVALID_REQUEST);
    assert!(full.message.contains("26 bytes; 24 are"), "{full}");
    carry_out(&mut session, 0, set("c", ""));
    let many = error(carry_out(&mut session, 0, set("d", "")));
    assert!(many.message.contains("3 values"), "{many}");
    assert_eq!(text(carry_out(&mut session, 0, set("a", "1"))), "{}");
    carry_out(&mut session, 0, StateRequest::set("b", None));
    assert_eq!(text(carry_out(&mut session, 0, set("d", "1"))), "{}");
}

#[test]
fn lowered_limits_let_values_shrink() {
    let (mut session, _calls) = with_calls(1);
    for key in ["a", "b"] {
        carry_out(&mut session, 0, set(key, "123456"));
    }
    session.limits.kept.total = 6;
    assert_eq!(text(carry_out(&mut session, 0, set("a", "1"))), "{}");
    error(carry_out(&mut session, 0, set("a", "12")));
}

#[test]
fn a_call_that_has_ended_keeps_nothing() {
    let (mut session, calls) = with_calls(1);
    carry_out(&mut session, 0, set("a", "1"));
    drop(calls);
    error(carry_out(&mut session, 0, set("a", "2")));
    session.snapshot();
    assert!(session.record().kept.done.is_empty());
}

#[test]
fn a_record_without_state_is_read() {
    let session = ready();
    let mut old: serde_json::Value = serde_json::from_slice(&session.record().to_bytes()).unwrap();
    old.as_object_mut().unwrap().remove("kept").unwrap();
    let read = Record::from_bytes(old.to_string().as_bytes()).unwrap();
    assert_eq!(&read, session.record());
}

#[derive(Clone, Debug)]
struct Step {
    call: u64,
    key: u8,
    value: Option<u8>,
    fate: Fate,
    between: Option<(u8, u8)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Stored,
    Refused,
    LostAfter,
    LostBefore,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fate = prop_oneof![
        4 => Just(Fate::Stored),
        1 => Just(Fate::Refused),
        2 => Just(Fate::LostAfter),
        1 => Just(Fate::LostBefore),
    ];
    let between = prop::option::of((0..5u8, 0..10u8));
    let step = (0..2u64, 0..5u8, prop::option::of(0..10u8), fate, between);
    let step = step.prop_map(|(call, key, value, fate, between)| Step {
        call,
        key,
        value,
        fate,
        between,
    });
    prop::collection::vec(step, 0..40)
}

struct Kept {
    session: SessionMachine,
    stored: Bytes,
    calls: BTreeMap<u64, CallId>,
    _running: Vec<Admission>,
}

impl Kept {
    fn new() -> Self {
        let (session, running) = with_calls(3);
        let calls = running.iter().map(|admission| {
            let slot = session.admitted().get(admission.request()).unwrap();
            (admission.request().number().unwrap(), slot.call())
        });
        Self {
            calls: calls.collect(),
            stored: session.record().to_bytes(),
            session,
            _running: running,
        }
    }

    fn lose_owner(&mut self) {
        let record = Record::from_bytes(&self.stored).unwrap();
        let mut next = SessionMachine::new(SessionId::random(), record, LIMITS);
        let calls = self.calls.iter();
        let running = calls.map(|(request, call)| {
            let (admission, _) = next.take_over(RequestId::from_number(*request), *call);
            admission
        });
        self._running = running.collect();
        self.session = next;
    }

    fn write(&mut self, call: u64, asked: StateRequest, fate: Fate) -> bool {
        match ask(&mut self.session, call, asked.clone()) {
            Effect::StateAnswer(Outcome::Result(_)) => true,
            Effect::StateAnswer(Outcome::Error(_)) => false,
            Effect::Keep { record, change } => match fate {
                Fate::Stored => {
                    self.stored = record;
                    self.session.apply(Input::Kept(change), &facts());
                    true
                }
                Fate::Refused => false,
                Fate::LostAfter => {
                    self.stored = record;
                    self.lose_owner();
                    true
                }
                Fate::LostBefore => {
                    self.lose_owner();
                    self.write(call, asked, Fate::Stored)
                }
            },
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn each_writing_is_carried_out_once() {
    let config = Config {
        cases: 500,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner.run(&steps(), check).unwrap();
}

fn check(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut kept = Kept::new();
    let mut model: BTreeMap<String, String> = BTreeMap::new();
    let put = |model: &mut BTreeMap<String, String>, key: &str, value: Option<u8>| match value {
        Some(value) => drop(model.insert(key.to_owned(), value.to_string())),
        None => drop(model.remove(key)),
    };
    for step in steps {
        let key = step.key.to_string();
        let asked = StateRequest::set(&key, step.value.map(|value| RawJson::of(&value)));
        let fits = step.value.is_none() || model.len() < 3 || model.contains_key(&key);
        let taken = kept.write(step.call, asked.clone(), step.fate);
        prop_assert_eq!(taken, fits && step.fate != Fate::Refused);
        if taken {
            put(&mut model, &key, step.value);
        }
        if let Some((key, value)) = step.between {
            let key = key.to_string();
            if kept.write(2, set_number(&key, value), Fate::Stored) {
                put(&mut model, &key, Some(value));
            }
        }
        if taken {
            prop_assert!(kept.write(step.call, asked, Fate::Stored));
        }
        let values = kept.session.record().kept.values.iter();
        let values: BTreeMap<String, String> = values
            .map(|(key, value)| (key.clone(), value.as_str().to_owned()))
            .collect();
        prop_assert_eq!(&values, &model);
        let stored = Record::from_bytes(&kept.stored).unwrap();
        prop_assert_eq!(&stored.kept, &kept.session.record().kept);
        prop_assert!(values.len() <= LIMITS.kept.keys);
    }
    Ok(())
}

fn set_number(key: &str, value: u8) -> StateRequest {
    StateRequest::set(key, Some(RawJson::of(&value)))
}
