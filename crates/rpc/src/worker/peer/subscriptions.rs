use shoal_ports::{ResourceUpdated, SessionId};
use shoal_protocol::{RawJson, RpcError};
use tokio::sync::oneshot;

use super::{LinkState, PeerState, WorkerPeer};
use crate::proto::worker::v1 as wire;
use crate::proto::worker::v1::node_frame::Frame;
use crate::worker::link::LinkToWorker;

/// Maximum number of ended sessions that a node remembers for a worker without a link.
const ENDED_SESSIONS: usize = 4096;

pub(super) struct Request {
    uri: String,
    withdrawn: bool,
    done: oneshot::Sender<Result<(), RpcError>>,
}

impl WorkerPeer {
    /// Drops the answer's sender if the worker has no link.
    pub(in crate::worker) fn subscribe(
        &self,
        uri: &str,
    ) -> oneshot::Receiver<Result<(), RpcError>> {
        let (done, answer) = oneshot::channel();
        let mut state = self.state.lock();
        let LinkState::Up(link) = &state.link_state else {
            return answer;
        };
        let outbox = link.outbox.clone();
        let (request, uri) = (self.number(), uri.to_owned());
        let frame = subscribe_frame(request, &uri);
        let asked = Request {
            uri,
            withdrawn: false,
            done,
        };
        state.requests.insert(request, asked);
        if let Err(too_long) = outbox.push(0, frame) {
            let error = RpcError::invalid_params(format!("the URI is too long: {too_long}"));
            drop(state);
            self.subscribed(request, Err(error));
        }
        answer
    }

    pub(in crate::worker) fn subscribed(&self, request: u64, outcome: Result<(), RpcError>) {
        let mut state = self.state.lock();
        let Some(request) = state.requests.remove(&request) else {
            return;
        };
        if outcome.is_ok() && !request.withdrawn {
            state.unsubscribed.remove(&request.uri);
            state.subscribed.insert(request.uri);
        }
        drop(state);
        let _ = request.done.send(outcome);
    }

    pub(in crate::worker) fn unsubscribe(&self, uri: &str) {
        let uri = uri.to_owned();
        let mut state = self.state.lock();
        let known = state.subscribed.remove(&uri);
        for request in state.requests.values_mut() {
            request.withdrawn |= request.uri == uri;
        }
        match &state.link_state {
            LinkState::Up(link) => link.send(0, Frame::Unsubscribe(wire::Unsubscribe { uri })),
            _ if known => {
                state.unsubscribed.insert(uri);
            }
            _ => {}
        }
    }

    pub(in crate::worker) fn end_session(&self, session: &SessionId) {
        let mut state = self.state.lock();
        match &state.link_state {
            LinkState::Up(link) => link.send(0, end_session_frame(session)),
            LinkState::Down if state.ended_sessions.len() < ENDED_SESSIONS => {
                state.ended_sessions.push(session.clone());
            }
            _ => {}
        }
    }

    /// The returned worker also gets the missed changes.
    pub(super) fn resume_subscriptions(&self, state: &mut PeerState, link: &LinkToWorker) {
        for uri in std::mem::take(&mut state.unsubscribed) {
            link.send(0, Frame::Unsubscribe(wire::Unsubscribe { uri }));
        }
        for uri in &state.subscribed {
            link.send(0, subscribe_frame(self.number(), uri));
            // Report an update, because updates during the worker's absence were lost.
            let _ = self.updates.send(ResourceUpdated {
                uri: uri.clone(),
                params: RawJson::of(&serde_json::json!({ "uri": uri })),
            });
        }
        for session in std::mem::take(&mut state.ended_sessions) {
            link.send(0, end_session_frame(&session));
        }
    }
}

impl PeerState {
    /// The worker may have made unanswered subscriptions, so the node ends them when the worker
    /// returns.
    pub(super) fn end_requests(&mut self) {
        for request in std::mem::take(&mut self.requests).into_values() {
            if !self.subscribed.contains(&request.uri) {
                self.unsubscribed.insert(request.uri);
            }
        }
    }
}

fn subscribe_frame(request: u64, uri: &str) -> Frame {
    Frame::Subscribe(wire::Subscribe {
        request,
        uri: uri.to_owned(),
    })
}

fn end_session_frame(session: &SessionId) -> Frame {
    Frame::EndSession(wire::EndSession {
        session: session.to_string(),
    })
}
