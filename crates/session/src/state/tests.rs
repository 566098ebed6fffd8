use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use shoal_ports::{
    Answered, AskId, CallId, ListOwner, OwnLists, Principal, ServerFacts, SessionId,
    SessionTransport, answered,
};
use shoal_protocol::{
    LogLevel, Message, Method, Notification, Outcome, RawJson, Request, RequestId, Response,
};

use super::{Admission, Came, Effect, Input, KeptLimits, Limits, SessionMachine, TaskTimes};
use crate::record::Record;

pub(crate) const LIMITS: Limits = Limits {
    calls: 3,
    subscriptions: 2,
    subscription_bytes: 64,
    kept: KeptLimits {
        value: 8,
        total: 24,
        keys: 3,
    },
    offers_tasks: true,
    task: TaskTimes {
        ttl: 60_000,
        poll_interval: 500,
    },
    retry_after: std::time::Duration::from_secs(1),
};

pub(crate) fn facts() -> ServerFacts {
    facts_at([0; 3])
}

fn facts_at(versions: [u64; 3]) -> ServerFacts {
    ServerFacts {
        server_info: RawJson::from_static(r#"{"name":"s","version":"1"}"#),
        capabilities: RawJson::from_static(r#"{"tools":{},"resources":{},"logging":{}}"#),
        instructions: None,
        versions,
        headers: std::sync::Arc::default(),
        own: OwnLists::default(),
    }
}

fn new_session() -> SessionMachine {
    let record = Record::new(Principal::anonymous(), SessionTransport::Streamable);
    SessionMachine::new(SessionId::random(), record, LIMITS)
}

pub(super) fn request(id: u64, method: Method, params: &'static str) -> Input {
    let params = Some(RawJson::from_static(params));
    let request = Request {
        id: RequestId::from_number(id),
        method,
        params,
    };
    Input::Request(request, Came::anew())
}

fn initialize(version: &'static str) -> Input {
    let params = format!(
        r#"{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}"#
    );
    let request = Request {
        id: RequestId::from_number(0),
        method: Method::Initialize,
        params: Some(RawJson::from_valid(params.into())),
    };
    Input::Request(request, Came::anew())
}

pub(super) fn call_of(session: &SessionMachine, request: u64) -> CallId {
    let slot = session.admitted().get(&RequestId::from_number(request));
    slot.map_or_else(CallId::generate, |slot| slot.call())
}

pub(super) fn ready() -> SessionMachine {
    let mut session = new_session();
    let effect = session.apply(initialize("2025-11-25"), &facts());
    assert!(matches!(effect, Effect::RespondAndSave(_)));
    session
}

fn error_of(effect: &Effect) -> i64 {
    let Effect::Respond(text) = effect else {
        panic!("expected a response, got {effect:?}")
    };
    let Message::Response(Response {
        outcome: Outcome::Error(error),
        ..
    }) = Message::parse(text).unwrap()
    else {
        panic!("expected an error, got {text:?}")
    };
    error.code
}

#[test]
fn nothing_but_ping_works_before_initialize() {
    let mut session = new_session();
    assert!(matches!(
        session.apply(request(1, Method::Ping, "{}"), &facts()),
        Effect::Respond(_)
    ));
    assert_eq!(
        error_of(&session.apply(request(2, Method::ToolsList, "{}"), &facts())),
        -32600
    );
    session.apply(initialize("2025-06-18"), &facts());
    assert!(matches!(
        session.apply(request(3, Method::ToolsList, "{}"), &facts()),
        Effect::Run(_)
    ));
    assert_eq!(
        error_of(&session.apply(initialize("2025-06-18"), &facts())),
        -32600
    );
}

#[test]
fn requests_of_one_id_are_served_side_by_side_if_each_was_posted() {
    let mut session = ready();
    let call = || request(7, Method::ToolsCall, "{}");
    let running = [call(), call()].map(|call| session.apply(call, &facts()));
    let [Effect::Run(first), Effect::Run(second)] = &running else {
        panic!("{running:?}")
    };
    assert_ne!(first.slot.call(), second.slot.call());
    let params = Some(RawJson::from_static("{}"));
    let repeated = Request {
        id: RequestId::from_number(7),
        method: Method::ToolsCall,
        params,
    };
    let came = Came::anew();
    let admitted = session.apply(Input::Request(repeated.clone(), came), &facts());
    let Effect::Run(third) = &admitted else {
        panic!("{admitted:?}")
    };
    let Effect::Running(found) = session.apply(Input::Repeated(repeated.clone(), came), &facts())
    else {
        panic!("not found")
    };
    assert_eq!(found[0].call(), third.slot.call());
    let late = session.apply(Input::Request(repeated, came), &facts());
    assert_eq!(error_of(&late), -32600);
    let cancel = Notification {
        method: Method::Cancelled,
        params: Some(RawJson::from_static(r#"{"requestId":7}"#)),
    };
    let Effect::Cancel { slot, .. } = session.apply(Input::Notification(cancel), &facts()) else {
        panic!("not cancelled")
    };
    assert_eq!(slot.call(), third.slot.call(), "the newest");
}

#[test]
fn a_duplicate_id_is_refused_where_all_answers_go_on_one_stream() {
    let record = Record::new(Principal::anonymous(), SessionTransport::SingleStream);
    let mut session = SessionMachine::new(SessionId::random(), record, LIMITS);
    session.apply(initialize("2025-11-25"), &facts());
    let call = || request(7, Method::ToolsCall, "{}");
    let running = session.apply(call(), &facts());
    assert!(matches!(running, Effect::Run(_)));
    assert_eq!(error_of(&session.apply(call(), &facts())), -32600);
    drop(running);
    assert!(matches!(session.apply(call(), &facts()), Effect::Run(_)));
}

#[test]
fn modern_methods_do_not_exist_in_a_legacy_session() {
    let mut session = ready();
    for method in [Method::Discover, Method::Listen, Method::TasksUpdate] {
        assert_eq!(
            error_of(&session.apply(request(1, method, "{}"), &facts())),
            -32601
        );
    }
}

#[test]
fn an_unsupported_level_is_named() {
    let mut session = ready();
    let bad = session.apply(
        request(1, Method::SetLevel, r#"{"level":"loud"}"#),
        &facts(),
    );
    assert_eq!(error_of(&bad), -32602);
    let good = session.apply(
        request(1, Method::SetLevel, r#"{"level":"error"}"#),
        &facts(),
    );
    assert!(matches!(good, Effect::RespondAndSave(_)));
    assert_eq!(session.record().log_level, LogLevel::Error);
}

#[test]
fn updates_are_conflated_while_nobody_listens() {
    let mut session = ready();
    session.apply(
        request(1, Method::ResourcesSubscribe, r#"{"uri":"r://a"}"#),
        &facts(),
    );
    for uri in ["r://a", "r://a", "r://b"] {
        let params = RawJson::from_static("{}");
        let input = Input::ResourceUpdated {
            uri: uri.into(),
            params,
        };
        assert!(matches!(session.apply(input, &facts()), Effect::None));
    }
    let now = facts_at([1, 0, 2]);
    let Effect::Announce(news) = session.apply(Input::Listening(1), &now) else {
        panic!()
    };
    assert_eq!(news.lists.len(), 2, "{news:?}");
    assert_eq!(news.resources.len(), 1, "{news:?}");
    let again = session.apply(Input::ListsChanged, &now);
    assert!(
        matches!(again, Effect::None),
        "what was told is not told again"
    );
}

#[test]
fn only_whose_lists_have_changed_is_told() {
    let mut session = ready();
    session.apply(Input::Listening(1), &facts());
    let own = |owner: ListOwner| ServerFacts {
        own: std::sync::Arc::new([(owner, [5, 0, 0])].into()),
        ..facts()
    };
    let others = own(ListOwner::Session(SessionId::random()));
    let nothing = session.apply(Input::ListsChanged, &others);
    assert!(matches!(nothing, Effect::None));
    let sessionless = own(ListOwner::Sessionless(Principal::anonymous()));
    let nothing = session.apply(Input::ListsChanged, &sessionless);
    assert!(matches!(nothing, Effect::None));
    let owners = [
        ListOwner::Session(session.session.clone()),
        ListOwner::Principal(Principal::anonymous()),
    ];
    for owner in owners {
        let Effect::Pass(news) = session.apply(Input::ListsChanged, &own(owner)) else {
            panic!()
        };
        assert_eq!(news.len(), 1, "the tools");
        let gone = session.apply(Input::ListsChanged, &facts());
        assert!(matches!(gone, Effect::Pass(_)));
    }
}

#[test]
fn a_cancellation_that_overtakes_the_dispatch_is_kept() {
    let mut session = ready();
    let Effect::Run(call) = session.apply(request(5, Method::ToolsCall, "{}"), &facts()) else {
        panic!()
    };
    let params = Some(RawJson::from_static(
        r#"{"requestId":5,"reason":"changed my mind"}"#,
    ));
    let cancelled = Input::Notification(Notification {
        method: Method::Cancelled,
        params,
    });
    let Effect::Cancel { slot, reason } = session.apply(cancelled, &facts()) else {
        panic!()
    };
    assert_eq!(reason, "changed my mind");
    slot.cancel(&reason);
    let control = std::sync::Arc::new(Recorder::default());
    call.slot.started(control.clone());
    assert_eq!(
        *control.cancelled.lock(),
        Some("changed my mind".to_owned())
    );
}

#[derive(Default)]
struct Recorder {
    cancelled: parking_lot::Mutex<Option<String>>,
}

impl shoal_ports::CallControl for Recorder {
    fn answer(&self, _: AskId, _: Outcome) -> Answered {
        answered(false)
    }
    fn cancel(&self, reason: &str) {
        *self.cancelled.lock() = Some(reason.to_owned());
    }
}

#[test]
fn a_record_survives_storage() {
    let mut session = ready();
    session.apply(
        request(1, Method::ResourcesSubscribe, r#"{"uri":"r://a"}"#),
        &facts(),
    );
    let record = session.record();
    assert_eq!(&Record::from_bytes(&record.to_bytes()).unwrap(), record);
}

#[derive(Clone, Debug)]
enum Step {
    /// The request's id, its method's index, and whether the caller waits.
    Request(u64, u8, bool),
    End(u64),
    Ask(u64),
    Answer(u64),
    Cancel(u64),
    Update(u8),
    Lists(u64),
    Listen(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..6u64, 0..9u8, 0..4u8).prop_map(|(id, method, waited)| Step::Request(
            id,
            method,
            waited > 0
        )),
        (0..6u64).prop_map(Step::End),
        (0..6u64).prop_map(Step::Ask),
        (0..12u64).prop_map(Step::Answer),
        (0..6u64).prop_map(Step::Cancel),
        (0..4u8).prop_map(Step::Update),
        (0..4u64).prop_map(Step::Lists),
        any::<bool>().prop_map(Step::Listen),
    ];
    prop::collection::vec(step, 0..80)
}

const METHODS: [Method; 8] = [
    Method::Ping,
    Method::ToolsCall,
    Method::ToolsList,
    Method::Initialize,
    Method::ResourcesSubscribe,
    Method::ResourcesUnsubscribe,
    Method::SetLevel,
    Method::ResourcesRead,
];

/// Promise 1 (one answer): a request is answered at once or admitted, and a client's answer reaches its call. Promise
/// 2 (no repeat): on one connection, a client is told of a change once, and on later connections until the change is
/// logged; requests to the client have unique ids. Promise 6 (bounded): in-flight requests respect the limit.
#[test]
fn promises_hold_whatever_happens() {
    let mut runner = TestRunner::new_with_rng(
        Config {
            cases: 2_000,
            failure_persistence: None,
            ..Config::default()
        },
        proptest::test_runner::TestRng::deterministic_rng(Config::default().rng_algorithm),
    );
    runner
        .run(&steps(), |steps| {
            check(steps)?;
            Ok(())
        })
        .unwrap();
}

fn check(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut session = ready();
    let mut in_flight: Vec<(u64, CallId, Admission)> = Vec::new();
    // For each question: its id, call and number, and whether the call runs.
    let mut asked: Vec<(RequestId, CallId, u64, bool)> = Vec::new();
    let (mut known, mut told, mut current) = ([0u64; 3], [0u64; 3], 0u64);
    let (mut reader, mut listening) = (0, false);
    for step in steps {
        match step {
            Step::Request(id, method, waited) => {
                let method = METHODS
                    .get(usize::from(method))
                    .cloned()
                    .unwrap_or(Method::Discover);
                let uri = if id % 2 == 0 {
                    r#"{"uri":"r://0","level":"info"}"#
                } else {
                    r#"{"uri":"r://1"}"#
                };
                let lists_tools = method == Method::ToolsList;
                match session.apply(request(id, method, uri), &facts_at([current; 3])) {
                    Effect::Run(call) => {
                        let known_call = in_flight.iter().any(|(_, it, _)| *it == call.slot.call());
                        prop_assert!(!known_call, "two requests of one call");
                        if lists_tools {
                            known[0] = current;
                        }
                        if waited {
                            in_flight.push((id, call.slot.call(), call.admission));
                        }
                    }
                    Effect::Respond(_)
                    | Effect::RespondAndSave(_)
                    | Effect::Subscribe { .. }
                    | Effect::Unsubscribe { .. } => {}
                    Effect::Overloaded { .. } => prop_assert_eq!(in_flight.len(), LIMITS.calls),
                    other => prop_assert!(false, "a request without an answer: {other:?}"),
                }
            }
            Step::End(id) => {
                let at = in_flight.iter().position(|(it, ..)| *it == id);
                if let Some((_, ended, _)) = at.map(|at| in_flight.remove(at)) {
                    for (_, call, _, runs) in &mut asked {
                        *runs &= *call != ended;
                    }
                }
            }
            Step::Ask(id) => {
                let ask = asked.len() as u64;
                let running = in_flight.iter().find(|(it, ..)| *it == id);
                let asker = running.map_or_else(CallId::generate, |(_, call, _)| *call);
                let input = Input::Asked {
                    call: asker,
                    ask: AskId(ask),
                    method: Method::RootsList,
                    params: None,
                };
                match session.apply(input, &facts()) {
                    Effect::Ask(text) => {
                        prop_assert!(in_flight.iter().any(|(_, call, _)| *call == asker));
                        let Message::Request(sent) = Message::parse(&text).unwrap() else {
                            return Err(TestCaseError::fail("not a request"));
                        };
                        let used = asked.iter().any(|(name, ..)| *name == sent.id);
                        prop_assert!(!used, "an id used twice");
                        asked.push((sent.id, asker, ask, true));
                    }
                    Effect::AskRefused => {
                        prop_assert!(!in_flight.iter().any(|(it, ..)| *it == id));
                    }
                    other => prop_assert!(false, "{other:?}"),
                }
            }
            Step::Answer(number) => {
                let open = asked.get(number as usize);
                let id = open.map_or(RequestId::from_number(number), |(name, ..)| name.clone());
                let outcome = Outcome::Result(RawJson::from_static("{}"));
                let effect = session.apply(Input::Response(Response { id, outcome }), &facts());
                match (open, effect) {
                    (Some((_, call, ask, true)), Effect::Answer { ask: to, slot, .. }) => {
                        prop_assert_eq!((slot.call(), to), (*call, AskId(*ask)));
                    }
                    (None | Some((.., false)), Effect::None) => {}
                    (open, effect) => prop_assert!(false, "{open:?} {effect:?}"),
                }
            }
            Step::Cancel(id) => {
                let params = RawJson::from_valid(format!(r#"{{"requestId":{id}}}"#).into());
                let input = Notification {
                    method: Method::Cancelled,
                    params: Some(params),
                };
                let cancelled = match session.apply(Input::Notification(input), &facts()) {
                    Effect::Cancel { slot, .. } => Some(slot.call()),
                    _ => None,
                };
                let newest = in_flight.iter().rev().find(|(it, ..)| *it == id);
                prop_assert_eq!(cancelled, newest.map(|(_, call, _)| *call));
            }
            Step::Update(resource) => {
                let input = Input::ResourceUpdated {
                    uri: format!("r://{resource}"),
                    params: RawJson::from_static("{}"),
                };
                let effect = session.apply(input, &facts());
                prop_assert!(listening || matches!(effect, Effect::None));
            }
            Step::Lists(version) => {
                current = current.max(version);
                match session.apply(Input::ListsChanged, &facts_at([current; 3])) {
                    Effect::Pass(news) => {
                        prop_assert!(listening && told != [current; 3], "told twice");
                        prop_assert_eq!(news.len(), 3);
                    }
                    Effect::None => prop_assert!(!listening || told == [current; 3], "not told"),
                    other => prop_assert!(false, "{other:?}"),
                }
                if listening {
                    told = [current; 3];
                }
            }
            Step::Listen(true) => {
                reader += 1;
                let missed = known.iter().filter(|known| **known != current).count();
                let announced =
                    match session.apply(Input::Listening(reader), &facts_at([current; 3])) {
                        Effect::Announce(news) => news.lists.len(),
                        _ => 0,
                    };
                prop_assert_eq!(announced, missed);
                (listening, told) = (true, [current; 3]);
                if announced > 0 && reader % 2 == 0 {
                    session.apply(Input::Announced([current; 3]), &facts_at([current; 3]));
                    known = [current; 3];
                }
            }
            Step::Listen(false) => {
                session.apply(Input::Left(reader), &facts());
                listening = false;
            }
        }
        prop_assert_eq!(session.admitted().count(), in_flight.len());
        prop_assert_eq!(session.admitted().held(), in_flight.len());
        prop_assert!(in_flight.len() <= LIMITS.calls);
        prop_assert!(session.record().subscriptions.len() <= LIMITS.subscriptions);
    }
    Ok(())
}
