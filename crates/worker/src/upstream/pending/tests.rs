use std::cell::{Cell, RefCell};

use shoal_ports::SessionId;
use shoal_protocol::{Method, Outcome, RawJson, RequestId};
use tokio::sync::mpsc;

use super::{
    Association, CallMessage, MAX_OWED, PendingCall, PendingRequests, Quarantine,
    RegisteredRequest, RequestOutcome, ServerRequest,
};

fn call(session: &str, askable: bool) -> (PendingCall, mpsc::Receiver<CallMessage>) {
    let (inbox, received) = mpsc::channel(16);
    let call = PendingCall {
        inbox,
        progress_token: None,
        askable,
        wants_log: true,
        session: Some(SessionId::new(session)),
        repeatable: Cell::new(true),
        elicitations: RefCell::default(),
    };
    (call, received)
}

fn register(pending: &PendingRequests, session: &str, written: bool) -> RegisteredRequest {
    let registered = pending.register(Some(call(session, true).0)).unwrap();
    if written {
        assert!(registered.write_state.begin_writing());
    }
    registered
}

fn ask(pending: &PendingRequests, association: Association) -> bool {
    ask_method(pending, Method::Elicit, association)
}

fn ask_method(pending: &PendingRequests, method: Method, association: Association) -> bool {
    let question = ServerRequest {
        id: RequestId::from_number(1),
        method,
        params: None,
    };
    pending.ask(question, association).is_ok()
}

#[test]
fn a_cancelled_call_is_owed_until_it_is_answered() {
    let pending = PendingRequests::default();
    let queued = register(&pending, "x", false);
    assert!(
        !pending.abandon(queued.id),
        "it never reached the connection"
    );
    let written = register(&pending, "x", true);
    assert!(pending.abandon(written.id));
    assert_eq!(
        pending.quarantine(),
        Quarantine::AllBut(SessionId::new("x"))
    );
    let other = register(&pending, "y", true);
    assert!(pending.abandon(other.id));
    assert_eq!(pending.quarantine(), Quarantine::Everybody);
    for id in [written.id, other.id] {
        let late = Outcome::Result(RawJson::from_static("{}"));
        assert!(
            !pending.finish(id, RequestOutcome::Answered(late)),
            "nobody waits"
        );
    }
    assert_eq!(pending.quarantine(), Quarantine::None);
}

#[test]
fn what_is_owed_is_bounded() {
    let pending = PendingRequests::default();
    for _ in 0..=MAX_OWED {
        let id = register(&pending, "x", true).id;
        pending.abandon(id);
    }
    assert_eq!(pending.quarantine(), Quarantine::Everybody);
}

#[test]
fn a_question_needs_one_call_that_may_be_asked() {
    let pending = PendingRequests::default();
    assert!(!ask(&pending, Association::OnlyCall));
    let plain = pending.register(Some(call("x", false).0)).unwrap();
    assert!(!ask(&pending, Association::OnlyCall));
    pending.abandon(plain.id);
    let (first, mut received) = call("x", true);
    pending.register(Some(first)).unwrap();
    assert!(ask(&pending, Association::OnlyCall));
    assert!(matches!(received.try_recv(), Ok(CallMessage::Ask(..))));
    let _second = pending.register(Some(call("y", false).0)).unwrap();
    assert!(!ask(&pending, Association::OnlyCall));
}

#[test]
fn an_early_question_waits_for_the_sessions_first_call_only() {
    let pending = PendingRequests::default();
    assert!(ask(&pending, Association::NewestCall));
    let (first, mut received) = call("x", false);
    let first = pending.register(Some(first)).unwrap();
    assert!(matches!(received.try_recv(), Ok(CallMessage::Ask(..))));
    pending.abandon(first.id);
    assert!(!ask(&pending, Association::NewestCall));
    let roots = ask_method(&pending, Method::RootsList, Association::NewestCall);
    assert!(roots, "roots are not about a call");
}

#[test]
fn the_end_tells_what_was_written_and_refuses_the_rest() {
    let pending = PendingRequests::default();
    let mut queued = register(&pending, "x", false);
    let mut written = register(&pending, "x", true);
    pending.end("gone".into());
    pending.end("later".into());
    for (registered, expected) in [(&mut queued, false), (&mut written, true)] {
        let Ok(RequestOutcome::Lost { written, reason }) = registered.outcome.try_recv() else {
            panic!()
        };
        assert_eq!((written, &*reason), (expected, "gone"));
    }
    assert!(
        pending
            .register(None)
            .is_err_and(|reason| &*reason == "gone")
    );
}

#[test]
fn the_end_of_an_elicitation_reaches_the_call_that_asked() {
    let pending = PendingRequests::default();
    let (calls, mut inboxes): (Vec<_>, Vec<_>) =
        ["x", "y", "z"].map(|s| call(s, true)).into_iter().unzip();
    let ids: Vec<_> = calls
        .into_iter()
        .map(|call| pending.register(Some(call)).unwrap().id)
        .collect();
    let asks = |call: usize, named: &str| {
        let params = format!(r#"{{"mode":"url","elicitationId":"{named}"}}"#);
        let question = ServerRequest {
            id: RequestId::from_number(1),
            method: Method::Elicit,
            params: RawJson::parse_text(params.into()).ok(),
        };
        assert!(pending.ask(question, Association::Call(ids[call])).is_ok());
    };
    asks(0, "a");
    asks(1, "b");
    asks(0, "both");
    asks(1, "both");
    let other = Some(Association::Call(ids[2]));
    for (named, otherwise, reaches) in [
        ("a", None, Some(0)),
        ("b", other, Some(1)),
        ("both", None, None),
        ("both", other, None),
        ("both", Some(Association::Call(ids[0])), Some(0)),
        ("unknown", None, None),
        ("unknown", other, Some(2)),
    ] {
        let params = format!(r#"{{"elicitationId":"{named}"}}"#);
        let params = RawJson::parse_text(params.into()).ok();
        let told = pending.complete_elicitation(params, otherwise);
        assert_eq!(told, reaches.is_some(), "{named}");
        let reached = inboxes.iter_mut().position(|inbox| {
            std::iter::from_fn(|| inbox.try_recv().ok()).any(|message| {
                matches!(message, CallMessage::Notify(Method::ElicitationComplete, _))
            })
        });
        assert_eq!(reached, reaches, "{named}");
    }
    assert!(!pending.complete_elicitation(None, other));
}
