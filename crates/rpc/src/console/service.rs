//! The side that is looked into.

use std::str::FromStr as _;
use std::sync::Arc;

use shoal_ports::{CallId, InspectError, Inspector, NodeId, SessionId};
use tonic::{Request, Response, Status};

use crate::convert::console::{calls_out, detail_out, errors_out, node_out, sessions_out};
use crate::proto::node::v1::inspect_answer::What as Answer;
use crate::proto::node::v1::inspect_request::What as Question;
use crate::proto::node::v1::node_console_server::{NodeConsole, NodeConsoleServer};
use crate::proto::node::v1::{
    ActAnswer, ActRequest, InspectAnswer, InspectRequest, SessionFound, act_request,
};

/// The most that is told at once, whatever is asked for.
const MOST: usize = 1_000;
/// The longest question.
const LONGEST_QUESTION: usize = 64 * 1024;

/// Answers other nodes' consoles. They come in through a [`ClusterServer`](crate::ClusterServer).
#[derive(Clone)]
pub struct ConsoleService {
    node: NodeId,
    inspector: Arc<dyn Inspector>,
}

/// Has other nodes look into the node `node` through `inspector`.
pub fn serve_inspector(node: NodeId, inspector: Arc<dyn Inspector>) -> ConsoleService {
    ConsoleService { node, inspector }
}

impl ConsoleService {
    /// The service that a server hosts.
    pub(crate) fn into_service(self) -> NodeConsoleServer<Self> {
        NodeConsoleServer::new(self).max_decoding_message_size(LONGEST_QUESTION)
    }

    fn expect_meant(&self, to: &str) -> Result<(), Status> {
        if to == self.node.as_str() {
            return Ok(());
        }
        let text = format!("this is the node {}, not {to}", self.node);
        Err(Status::failed_precondition(text))
    }
}

#[tonic::async_trait]
impl NodeConsole for ConsoleService {
    async fn inspect(
        &self,
        request: Request<InspectRequest>,
    ) -> Result<Response<InspectAnswer>, Status> {
        let InspectRequest { to, what } = request.into_inner();
        self.expect_meant(&to)?;
        let inspector = &self.inspector;
        let answer = match what.ok_or_else(unknown)? {
            Question::Node(_) => inspector.node().await.map(|it| Answer::Node(node_out(it))),
            Question::Sessions(asked) => inspector
                .sessions(&asked.filter, limit(asked.limit))
                .await
                .map(|it| Answer::Sessions(sessions_out(it))),
            Question::Session(asked) => inspector
                .session(&SessionId::new(asked.session))
                .await
                .map(|it| {
                    let detail = it.map(detail_out);
                    Answer::Session(SessionFound { detail })
                }),
            Question::Calls(asked) => inspector
                .calls(limit(asked.limit))
                .await
                .map(|it| Answer::Calls(calls_out(it))),
            Question::Errors(asked) => inspector
                .errors(limit(asked.limit))
                .await
                .map(|it| Answer::Errors(errors_out(it))),
        };
        let what = Some(answer.map_err(failed)?);
        Ok(Response::new(InspectAnswer { what }))
    }

    async fn act(&self, request: Request<ActRequest>) -> Result<Response<ActAnswer>, Status> {
        let ActRequest { to, what } = request.into_inner();
        self.expect_meant(&to)?;
        let done = match what.ok_or_else(unknown)? {
            act_request::What::EndSession(end) => {
                let session = SessionId::new(end.session);
                self.inspector.end_session(&session).await
            }
            act_request::What::CancelCall(cancel) => {
                let call = CallId::from_str(&cancel.call)
                    .map_err(|_| Status::invalid_argument("call: it is no id of a call"))?;
                self.inspector.cancel_call(call, &cancel.reason).await
            }
        };
        let done = done.map_err(failed)?;
        Ok(Response::new(ActAnswer { done }))
    }
}

fn limit(asked: u32) -> usize {
    usize::try_from(asked).unwrap_or(MOST).min(MOST)
}

fn unknown() -> Status {
    Status::unimplemented("this release does not know what is asked")
}

fn failed(error: InspectError) -> Status {
    match error {
        InspectError::Unsupported => unknown(),
        InspectError::Unreachable(reason) => Status::unavailable(reason),
        InspectError::Failed(reason) => Status::internal(reason),
    }
}
