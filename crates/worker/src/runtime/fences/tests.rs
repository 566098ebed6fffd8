use std::sync::Arc;

use shoal_ports::{CallFailure, Caller, Epoch, Principal, SessionId};
use shoal_protocol::{RawJson, Revision};

use super::{FORGOTTEN, MOST, SessionFences};

fn caller(principal: &str, session: usize) -> Caller {
    Caller {
        principal: Principal::new(principal),
        session: Some(SessionId::new(session.to_string())),
        revision: Revision::V2025_11_25,
        client_info: None,
        capabilities: RawJson::from_static("{}"),
        headers: shoal_ports::ForwardedHeaders::default(),
        grant: None,
    }
}

fn hear(sessions: &SessionFences, caller: &Caller, epoch: u64) -> Result<(), CallFailure> {
    sessions.hear(caller, Some(Epoch(epoch)))
}

#[test]
fn a_former_owner_is_not_heard() {
    let sessions = SessionFences::default();
    let (one, other) = (caller("p", 1), caller("p", 2));
    assert_eq!(hear(&sessions, &one, 5), Ok(()));
    assert_eq!(hear(&sessions, &one, 5), Ok(()));
    assert_eq!(hear(&sessions, &one, 7), Ok(()));
    let superseded = Err(CallFailure::Superseded { epoch: Epoch(7) });
    assert_eq!(hear(&sessions, &one, 6), superseded);
    assert_eq!(hear(&sessions, &other, 1), Ok(()), "another session");
    assert_eq!(
        sessions.hear(&one, None),
        Ok(()),
        "a release without epochs"
    );
    let nobody = Caller {
        session: None,
        ..caller("p", 1)
    };
    assert_eq!(hear(&sessions, &nobody, 1), Ok(()));
}

#[test]
fn an_end_does_not_hide_the_epoch() {
    let sessions = SessionFences::default();
    let one = caller("p", 1);
    let id = one.session.clone().unwrap();
    assert_eq!(hear(&sessions, &one, 5), Ok(()));
    assert!(!sessions.has_ended(&id));
    sessions.end(&id);
    assert!(sessions.has_ended(&id) && hear(&sessions, &one, 4).is_err());
}

#[test]
fn whoever_has_most_forgets_first() {
    let sessions = SessionFences::default();
    let quiet = caller("quiet", MOST * 4);
    assert_eq!(hear(&sessions, &quiet, 9), Ok(()));
    for n in 0..MOST * 3 {
        assert_eq!(hear(&sessions, &caller("busy", n), 9), Ok(()));
    }
    assert!(hear(&sessions, &quiet, 8).is_err());
    assert_eq!(hear(&sessions, &caller("busy", 0), 8), Ok(()), "forgotten");
    assert!(hear(&sessions, &caller("busy", MOST * 3 - 1), 8).is_err());
    let known = sessions.0.lock();
    assert!(known.sessions.len() <= MOST);
    assert!(known.order.len() <= MOST + MOST / FORGOTTEN);
}

#[test]
fn what_is_used_is_not_forgotten() {
    let sessions = Arc::new(SessionFences::default());
    let used = caller("p", MOST * 4);
    assert_eq!(hear(&sessions, &used, 9), Ok(()));
    for n in 0..MOST * 3 {
        assert_eq!(hear(&sessions, &caller("p", n), 9), Ok(()));
        if n % FORGOTTEN == 0 {
            assert_eq!(hear(&sessions, &used, 9), Ok(()));
        }
    }
    assert!(hear(&sessions, &used, 8).is_err());
    assert!(sessions.0.lock().order.len() <= MOST * 2);
}

/// All sessions fit. Each is renewed when it is the oldest.
#[test]
fn sessions_that_are_used_in_turn_leave_nothing_behind() {
    let sessions = SessionFences::default();
    for n in 0..MOST * 8 {
        let one = caller("p", n % (FORGOTTEN * 2));
        assert_eq!(hear(&sessions, &one, 9), Ok(()));
    }
    let known = sessions.0.lock();
    assert_eq!(known.sessions.len(), FORGOTTEN * 2);
    assert!(known.order.len() <= MOST * 2 + 1, "{}", known.order.len());
}
