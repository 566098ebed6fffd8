use std::str::FromStr as _;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use shoal_ports::{CallId, InspectError, Inspector, NodeId, SessionId};
use tonic::{Request, Response, Status};

use crate::proto::node::v1::inspect_request::What as Question;
use crate::proto::node::v1::node_console_server::{NodeConsole, NodeConsoleServer};
use crate::proto::node::v1::{ActAnswer, ActRequest, InspectAnswer, InspectRequest, act_request};
use crate::tls::Standing;

const MOST: usize = 1_000;
const LONGEST_QUESTION: usize = 64 * 1024;

/// Answers the consoles of other nodes, through a [`ClusterServer`](crate::ClusterServer).
#[derive(Clone)]
pub struct ConsoleService {
    node: NodeId,
    inspector: Arc<dyn Inspector>,
}

/// Serves `inspector` of `node` to other nodes.
pub fn serve_inspector(node: NodeId, inspector: Arc<dyn Inspector>) -> ConsoleService {
    ConsoleService { node, inspector }
}

impl ConsoleService {
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
        Standing::of_request(&request).expect_node("the console")?;
        let InspectRequest { to, what } = request.into_inner();
        self.expect_meant(&to)?;
        let inspector = &self.inspector;
        let report = match what.ok_or_else(unknown)? {
            Question::Node(_) => json(inspector.node().await),
            Question::Sessions(asked) => {
                let limit = limit(asked.limit);
                json(inspector.sessions(&asked.filter, limit).await)
            }
            Question::Session(asked) => {
                let session = SessionId::new(asked.session);
                json(inspector.session(&session).await)
            }
            Question::Calls(asked) => json(inspector.calls(limit(asked.limit)).await),
            Question::Errors(asked) => json(inspector.errors(limit(asked.limit)).await),
            Question::Tools(asked) => {
                let limit = limit(asked.limit);
                json(inspector.tools(&asked.filter, limit).await)
            }
            Question::Tool(asked) => json(inspector.tool(&asked.name).await),
        };
        let report = report?;
        Ok(Response::new(InspectAnswer { report }))
    }

    async fn act(&self, request: Request<ActRequest>) -> Result<Response<ActAnswer>, Status> {
        Standing::of_request(&request).expect_node("the console")?;
        let ActRequest { to, what } = request.into_inner();
        self.expect_meant(&to)?;
        let done = match what.ok_or_else(unknown)? {
            act_request::What::EndSession(end) => {
                let session = SessionId::new(end.session);
                self.inspector.end_session(&session).await
            }
            act_request::What::CancelCall(cancel) => {
                let call = CallId::from_str(&cancel.call)
                    .map_err(|_| Status::invalid_argument("call: not a valid call id"))?;
                self.inspector.cancel_call(call, &cancel.reason).await
            }
        };
        let done = done.map_err(failed)?;
        Ok(Response::new(ActAnswer { done }))
    }
}

fn json<T: Serialize>(told: Result<T, InspectError>) -> Result<Bytes, Status> {
    let report = serde_json::to_vec(&told.map_err(failed)?);
    let report = report.map_err(|error| Status::internal(error.to_string()))?;
    Ok(report.into())
}

fn limit(asked: u32) -> usize {
    usize::try_from(asked).unwrap_or(MOST).min(MOST)
}

fn unknown() -> Status {
    Status::unimplemented("this release does not know the request")
}

fn failed(error: InspectError) -> Status {
    match error {
        InspectError::Unsupported => unknown(),
        InspectError::Unreachable(reason) => Status::unavailable(reason),
        InspectError::Failed(reason) => Status::internal(reason),
    }
}
