use std::collections::BTreeMap;

use super::{Continuation, KeyRing, RefusedState, RequestDigest, RequestState, SealKey};
use crate::{Method, RawJson};

fn digest(params: &'static str) -> RequestDigest {
    RequestDigest::of(&Method::ToolsCall, Some(&RawJson::from_static(params)))
}

fn state() -> RequestState {
    RequestState {
        principal: "alice".into(),
        expires_at: 100,
        digest: digest(r#"{"name":"t","arguments":{"a":1,"b":2}}"#),
        continuation: Continuation::Backend {
            state: Some("s".into()),
            call: None,
        },
    }
}

#[test]
fn opens_for_its_owner_and_request_until_it_expires() {
    let ring = KeyRing::new(vec![SealKey::random()]);
    let sealed = ring.seal(&state());
    let retry = digest(
        r#"{"arguments":{"b":2,"a":1},"name":"t","_meta":{"x":1},"requestState":"…","inputResponses":{}}"#,
    );
    assert!(ring.open(&sealed, "alice", &retry, 99).is_ok());
    assert_eq!(
        ring.open(&sealed, "alice", &retry, 100),
        Err(RefusedState::Expired)
    );
    let parked = RequestState {
        continuation: Continuation::Parked {
            call: "c".into(),
            asked: BTreeMap::new(),
        },
        ..state()
    };
    let sealed_parked = ring.seal(&parked);
    assert!(ring.open(&sealed_parked, "alice", &retry, u64::MAX).is_ok());
    assert_eq!(
        ring.open(&sealed, "bob", &retry, 1),
        Err(RefusedState::OtherPrincipal)
    );
    let other = digest(r#"{"name":"t","arguments":{"a":1,"b":3}}"#);
    assert_eq!(
        ring.open(&sealed, "alice", &other, 1),
        Err(RefusedState::OtherRequest)
    );
}

#[test]
fn any_changed_character_is_refused() {
    let ring = KeyRing::new(vec![SealKey::random()]);
    let sealed = ring.seal(&state());
    for at in 0..sealed.len() {
        let mut forged = sealed.clone().into_bytes();
        forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(forged).unwrap();
        assert_eq!(
            ring.open(&forged, "alice", &state().digest, 1),
            Err(RefusedState::Forged),
            "character {at}"
        );
    }
}

#[test]
fn a_rotated_ring_opens_old_states_and_a_foreign_one_does_not() {
    let (old, new) = (SealKey::random(), SealKey::random());
    let sealed = KeyRing::new(vec![old.clone()]).seal(&state());
    let rotated = KeyRing::new(vec![new.clone(), old]);
    assert!(rotated.open(&sealed, "alice", &state().digest, 1).is_ok());
    let foreign = KeyRing::new(vec![new]);
    assert_eq!(
        foreign.open(&sealed, "alice", &state().digest, 1),
        Err(RefusedState::Forged)
    );
}

#[test]
fn what_an_older_release_has_sealed_is_read() {
    let sealed = r#"{"Backend":{"state":"s"}}"#;
    let Continuation::Backend { state, call } = serde_json::from_str(sealed).unwrap() else {
        panic!("it is a backend's");
    };
    assert_eq!((state.as_deref(), call), (Some("s"), None));
}
