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

use super::{SessionCell, Up};
use crate::actor::{Reply, SessionCore, SessionMsg};
use crate::record::Record;
use crate::state::tests::{LIMITS, facts};
use crate::state::{AdmittedCall, Effect, Input, SessionState, handshake_of};

/// A session that nobody has asked for anything since it was opened.
fn session(up: &Arc<Up>) -> Arc<SessionCell> {
    let record = Record::new(Principal::anonymous(), SessionTransport::Streamable);
    let mut state = SessionState::new(SessionId::random(), record, LIMITS);
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
    let initialize = request(0, Method::Initialize, Some(RawJson::from_static(params)));
    assert!(handshake_of(&initialize).is_ok());
    state.apply(Input::Request(initialize), &facts());
    let (_, facts) = watch::channel(Arc::new(facts()));
    let core = SessionCore::new(state, facts);
    SessionCell::new(core, up.clone())
}

fn request(id: u64, method: Method, params: Option<RawJson>) -> Request {
    Request {
        id: RequestId::from_number(id),
        method,
        params,
    }
}

fn ask<T: Send + 'static>(
    cell: &Arc<SessionCell>,
    message: impl FnOnce(RpcReplyPort<T>) -> SessionMsg,
) -> Option<OneshotReceiver<T>> {
    let (reply, replied) = oneshot();
    cell.send(message(reply.into())).then_some(replied)
}

fn apply(cell: &Arc<SessionCell>, input: Input) -> OneshotReceiver<Reply> {
    ask(cell, |reply| SessionMsg::Apply(input, None, reply)).unwrap()
}

/// The client calls a tool.
async fn call(cell: &Arc<SessionCell>, id: u64) -> Box<AdmittedCall> {
    let params = RawJson::from_static(r#"{"name":"t"}"#);
    let run = Input::Request(request(id, Method::ToolsCall, Some(params)));
    match apply(cell, run).await {
        Ok(Reply::Effect(Effect::Run(admitted))) => admitted,
        _ => panic!("it is admitted"),
    }
}

/// Gets the session its actor: the client asks for something beside a call, which ends then.
async fn start_actor(cell: &Arc<SessionCell>) {
    let _running = call(cell, 9).await;
    assert!(responds(ping(cell)).await);
}

/// The client pings.
fn ping(cell: &Arc<SessionCell>) -> OneshotReceiver<Reply> {
    apply(cell, Input::Request(request(1, Method::Ping, None)))
}

async fn responds(reply: OneshotReceiver<Reply>) -> bool {
    matches!(reply.await, Ok(Reply::Effect(Effect::Respond(_))))
}

/// The record, if nothing goes on in the session.
async fn passivated(cell: &Arc<SessionCell>) -> Option<Bytes> {
    ask(cell, SessionMsg::Passivate).unwrap().await.unwrap()
}

/// Beats until the actor is gone.
async fn asleep(up: &Up, cell: &SessionCell) {
    let dozing = async {
        while cell.is_up() {
            up.beat().await;
        }
    };
    let soon = Duration::from_secs(10);
    tokio::time::timeout(soon, dozing).await.unwrap();
}

#[tokio::test]
async fn only_requests_beside_others_need_an_actor() {
    let up = Arc::default();
    let cell = session(&up);
    cell.send(SessionMsg::Note(Input::Listening(1)));
    assert!(passivated(&cell).await.is_none(), "somebody listens");
    assert!(responds(ping(&cell)).await);
    assert!(responds(ping(&cell)).await);
    let _running = call(&cell, 2).await;
    assert!(!cell.is_up());
    assert!(responds(ping(&cell)).await);
    assert!(cell.is_up());
}

#[tokio::test]
async fn what_an_actor_knew_is_known_without_it_and_to_the_next() {
    let up = Arc::default();
    let cell = session(&up);
    start_actor(&cell).await;
    cell.send(SessionMsg::Note(Input::Listening(1)));
    asleep(&up, &cell).await;
    assert!(passivated(&cell).await.is_none(), "somebody listens");
    start_actor(&cell).await;
    assert!(passivated(&cell).await.is_none(), "somebody listens");
    asleep(&up, &cell).await;
    cell.send(SessionMsg::Note(Input::Left(1)));
    assert!(passivated(&cell).await.is_some());
    assert!(matches!(ping(&cell).await, Ok(Reply::Closed)));
}

#[tokio::test]
async fn an_actor_goes_only_when_a_whole_beat_brought_it_nothing() {
    let up = Arc::default();
    let cell = session(&up);
    // The test's thread is the only one: the actor runs when something is waited for.
    start_actor(&cell).await;
    for _ in 0..3 {
        assert!(cell.beat(), "used since the last beat");
        tokio::task::yield_now().await;
        assert!(cell.is_up());
        cell.send(SessionMsg::Tidy);
    }
    assert!(cell.beat());
    assert!(cell.beat(), "asked to go, not gone");
    asleep(&up, &cell).await;
}

#[tokio::test]
async fn an_actor_stays_while_a_call_runs() {
    let up = Arc::default();
    let cell = session(&up);
    let running = call(&cell, 2).await;
    assert!(responds(ping(&cell)).await);
    for _ in 0..4 {
        up.beat().await;
        assert_eq!((cell.is_up(), up.len()), (true, 1));
    }
    drop(running);
    asleep(&up, &cell).await;
    assert!(
        passivated(&cell).await.is_some(),
        "its end is not forgotten"
    );
}

#[tokio::test]
async fn what_comes_between_two_requests_to_go_is_handled() {
    let up = Arc::default();
    let cell = session(&up);
    start_actor(&cell).await;
    // None of this has reached the actor before the whole of it is sent.
    assert!(cell.beat() && cell.beat());
    let pong = ping(&cell);
    assert!(cell.beat() && cell.beat());
    assert!(responds(pong).await);
    asleep(&up, &cell).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_overtaken_by_falling_asleep() {
    let up = Arc::default();
    let cell = session(&up);
    let tiring = tokio::spawn({
        let up = up.clone();
        async move {
            loop {
                up.beat().await;
            }
        }
    });
    for reader in 0..2_000 {
        cell.send(SessionMsg::Note(Input::Listening(reader)));
        start_actor(&cell).await;
        cell.send(SessionMsg::Note(Input::Left(reader)));
        start_actor(&cell).await;
        assert!(up.len() <= 1);
    }
    tiring.abort();
    assert!(passivated(&cell).await.is_some(), "the last one left, too");
}

#[tokio::test]
async fn beats_forget_who_needs_none() {
    let up = Arc::default();
    let sessions: Vec<_> = (0..10).map(|_| session(&up)).collect();
    for cell in &sessions {
        start_actor(cell).await;
        start_actor(cell).await;
    }
    assert_eq!(up.len(), 10, "each once");
    for cell in &sessions[..4] {
        cell.stop();
    }
    up.beat().await;
    assert_eq!(up.len(), 6);
    for cell in &sessions[4..] {
        asleep(&up, cell).await;
    }
    up.beat().await;
    assert_eq!(up.len(), 0);
    let cell = &sessions[9];
    start_actor(cell).await;
    assert_eq!(up.len(), 1);
}

#[tokio::test]
async fn who_was_stopped_does_not_wake() {
    let up = Arc::default();
    let (awake, dozing) = (session(&up), session(&up));
    start_actor(&awake).await;
    for cell in [awake, dozing] {
        cell.stop();
        assert!(ask(&cell, SessionMsg::Snapshot).is_none());
        assert!(!cell.is_up());
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
    start_actor(&awake).await;
    for cell in [awake, dozing] {
        let (reply, replied) = oneshot();
        let mut replied = Box::pin(replied);
        let waker = Waker::from(Arc::new(Nervous));
        let waiting = replied.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(waiting.is_pending());
        let up = cell.is_up();
        let sent = cell.send(SessionMsg::Snapshot(reply.into()));
        assert_eq!(sent, up, "an actor has the message before it panics");
        let gone = async {
            while let Some(reply) = ask(&cell, SessionMsg::Snapshot) {
                assert!(reply.await.is_err());
            }
        };
        let soon = Duration::from_secs(10);
        tokio::time::timeout(soon, gone).await.unwrap();
        cell.beat();
        assert!(!cell.beat(), "no more beats are wasted on it");
        assert!(!cell.is_up());
    }
}
