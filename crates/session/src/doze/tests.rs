//! What an actor knows outlives it, and nothing that it is sent is lost.

use std::future::Future as _;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use ractor::RpcReplyPort;
use ractor::concurrency::{OneshotReceiver, oneshot};
use shoal_ports::{Principal, SessionId, SessionTransport};
use shoal_protocol::{Method, RawJson, Request, RequestId};
use tokio::sync::watch;

use super::{Bed, Up};
use crate::actor::{Mind, Reply, SessionMsg};
use crate::record::Record;
use crate::state::tests::{LIMITS, facts};
use crate::state::{AdmittedCall, Effect, Input, SessionState, handshake_of};

/// A session that nobody has asked for anything since it was opened.
fn session(up: &Arc<Up>) -> Arc<Bed> {
    let record = Record::new(Principal::anonymous(), SessionTransport::Streamable);
    let mut state = SessionState::new(SessionId::random(), record, LIMITS);
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
    let initialize = request(0, Method::Initialize, Some(RawJson::from_static(params)));
    assert!(handshake_of(&initialize).is_ok());
    state.apply(Input::Request(initialize), &facts());
    let (_, facts) = watch::channel(Arc::new(facts()));
    let mind = Mind::new(state, facts);
    Bed::new(mind, up.clone())
}

fn request(id: u64, method: Method, params: Option<RawJson>) -> Request {
    Request {
        id: RequestId::from_number(id),
        method,
        params,
    }
}

fn ask<T: Send + 'static>(
    bed: &Arc<Bed>,
    message: impl FnOnce(RpcReplyPort<T>) -> SessionMsg,
) -> Option<OneshotReceiver<T>> {
    let (reply, replied) = oneshot();
    bed.send(message(reply.into())).then_some(replied)
}

fn apply(bed: &Arc<Bed>, input: Input) -> OneshotReceiver<Reply> {
    ask(bed, |reply| SessionMsg::Apply(input, None, reply)).unwrap()
}

/// The client calls a tool.
async fn call(bed: &Arc<Bed>, id: u64) -> Box<AdmittedCall> {
    let params = RawJson::from_static(r#"{"name":"t"}"#);
    let run = Input::Request(request(id, Method::ToolsCall, Some(params)));
    match apply(bed, run).await {
        Ok(Reply::Effect(Effect::Run(admitted))) => admitted,
        _ => panic!("it is admitted"),
    }
}

/// Gets the session its actor: the client asks for something beside a call, which ends then.
async fn get_up(bed: &Arc<Bed>) {
    let _running = call(bed, 9).await;
    assert!(responds(ping(bed)).await);
}

/// The client pings.
fn ping(bed: &Arc<Bed>) -> OneshotReceiver<Reply> {
    apply(bed, Input::Request(request(1, Method::Ping, None)))
}

async fn responds(reply: OneshotReceiver<Reply>) -> bool {
    matches!(reply.await, Ok(Reply::Effect(Effect::Respond(_))))
}

/// The record, if nothing goes on in the session.
async fn passivated(bed: &Arc<Bed>) -> Option<Bytes> {
    ask(bed, SessionMsg::Passivate).unwrap().await.unwrap()
}

/// Beats until the actor is gone.
async fn asleep(up: &Up, bed: &Bed) {
    let dozing = async {
        while bed.is_up() {
            up.beat().await;
        }
    };
    let soon = Duration::from_secs(10);
    tokio::time::timeout(soon, dozing).await.unwrap();
}

#[tokio::test]
async fn only_requests_beside_others_need_an_actor() {
    let up = Arc::default();
    let bed = session(&up);
    bed.send(SessionMsg::Note(Input::Listening(1)));
    assert!(passivated(&bed).await.is_none(), "somebody listens");
    assert!(responds(ping(&bed)).await);
    assert!(responds(ping(&bed)).await);
    let _running = call(&bed, 2).await;
    assert!(!bed.is_up());
    assert!(responds(ping(&bed)).await);
    assert!(bed.is_up());
}

#[tokio::test]
async fn what_an_actor_knew_is_known_without_it_and_to_the_next() {
    let up = Arc::default();
    let bed = session(&up);
    get_up(&bed).await;
    bed.send(SessionMsg::Note(Input::Listening(1)));
    asleep(&up, &bed).await;
    assert!(passivated(&bed).await.is_none(), "somebody listens");
    get_up(&bed).await;
    assert!(passivated(&bed).await.is_none(), "somebody listens");
    asleep(&up, &bed).await;
    bed.send(SessionMsg::Note(Input::Left(1)));
    assert!(passivated(&bed).await.is_some());
    assert!(matches!(ping(&bed).await, Ok(Reply::Closed)));
}

#[tokio::test]
async fn an_actor_goes_only_when_a_whole_beat_brought_it_nothing() {
    let up = Arc::default();
    let bed = session(&up);
    // The test's thread is the only one: the actor runs when something is waited for.
    get_up(&bed).await;
    for _ in 0..3 {
        assert!(bed.beat(), "used since the last beat");
        tokio::task::yield_now().await;
        assert!(bed.is_up());
        bed.send(SessionMsg::Tidy);
    }
    assert!(bed.beat());
    assert!(bed.beat(), "asked to go, not gone");
    asleep(&up, &bed).await;
}

#[tokio::test]
async fn an_actor_stays_while_a_call_runs() {
    let up = Arc::default();
    let bed = session(&up);
    let running = call(&bed, 2).await;
    assert!(responds(ping(&bed)).await);
    for _ in 0..4 {
        up.beat().await;
        assert_eq!((bed.is_up(), up.len()), (true, 1));
    }
    drop(running);
    asleep(&up, &bed).await;
    assert!(passivated(&bed).await.is_some(), "its end is not forgotten");
}

#[tokio::test]
async fn what_comes_between_two_requests_to_go_is_handled() {
    let up = Arc::default();
    let bed = session(&up);
    get_up(&bed).await;
    // None of this has reached the actor before the whole of it is sent.
    assert!(bed.beat() && bed.beat());
    let pong = ping(&bed);
    assert!(bed.beat() && bed.beat());
    assert!(responds(pong).await);
    asleep(&up, &bed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_overtaken_by_falling_asleep() {
    let up = Arc::default();
    let bed = session(&up);
    let tiring = tokio::spawn({
        let up = up.clone();
        async move {
            loop {
                up.beat().await;
            }
        }
    });
    for reader in 0..2_000 {
        bed.send(SessionMsg::Note(Input::Listening(reader)));
        get_up(&bed).await;
        bed.send(SessionMsg::Note(Input::Left(reader)));
        get_up(&bed).await;
        assert!(up.len() <= 1);
    }
    tiring.abort();
    assert!(passivated(&bed).await.is_some(), "the last one left, too");
}

#[tokio::test]
async fn beats_forget_who_needs_none() {
    let up = Arc::default();
    let sessions: Vec<_> = (0..10).map(|_| session(&up)).collect();
    for bed in &sessions {
        get_up(bed).await;
        get_up(bed).await;
    }
    assert_eq!(up.len(), 10, "each once");
    for bed in &sessions[..4] {
        bed.stop();
    }
    up.beat().await;
    assert_eq!(up.len(), 6);
    for bed in &sessions[4..] {
        asleep(&up, bed).await;
    }
    up.beat().await;
    assert_eq!(up.len(), 0);
    let bed = &sessions[9];
    get_up(bed).await;
    assert_eq!(up.len(), 1);
}

#[tokio::test]
async fn who_was_stopped_does_not_wake() {
    let up = Arc::default();
    let (awake, dozing) = (session(&up), session(&up));
    get_up(&awake).await;
    for bed in [awake, dozing] {
        bed.stop();
        assert!(ask(&bed, SessionMsg::Snapshot).is_none());
        assert!(!bed.is_up());
    }
}

#[tokio::test]
async fn a_panic_ends_the_session_and_not_who_asked() {
    /// Who waits for an answer, and panics when it comes.
    struct Nervous;
    impl Wake for Nervous {
        fn wake(self: Arc<Self>) {
            panic!("this panic is part of the test");
        }
    }
    let up = Arc::default();
    let (awake, dozing) = (session(&up), session(&up));
    get_up(&awake).await;
    for bed in [awake, dozing] {
        let (reply, replied) = oneshot();
        let mut replied = Box::pin(replied);
        let waker = Waker::from(Arc::new(Nervous));
        let waiting = replied.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(waiting.is_pending());
        let up = bed.is_up();
        let sent = bed.send(SessionMsg::Snapshot(reply.into()));
        assert_eq!(sent, up, "an actor has the message before it panics");
        let gone = async {
            while let Some(reply) = ask(&bed, SessionMsg::Snapshot) {
                assert!(reply.await.is_err());
            }
        };
        let soon = Duration::from_secs(10);
        tokio::time::timeout(soon, gone).await.unwrap();
        bed.beat();
        assert!(!bed.beat(), "no more beats are wasted on it");
        assert!(!bed.is_up());
    }
}
