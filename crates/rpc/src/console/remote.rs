use async_trait::async_trait;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use shoal_ports::{
    CallId, CallReport, ErrorReport, InspectError, Inspector, Listing, NodeId, NodeReport,
    SessionDetail, SessionId, SessionReport, ToolDetail, ToolReport,
};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::LinkConfig;
use crate::link::dial;
use crate::proto::node::v1::inspect_request::What as Question;
use crate::proto::node::v1::node_console_client::NodeConsoleClient;
use crate::proto::node::v1::{
    ActRequest, CancelCall, EndSession, InspectCalls, InspectErrors, InspectNode, InspectRequest,
    InspectSession, InspectSessions, InspectTool, InspectTools, act_request,
};

/// Maximum bytes of an answer: each of a thousand reports has a few hundred.
const LONGEST_ANSWER: usize = 8 * 1024 * 1024;

/// The inspector of another node, over its cluster listener.
///
/// Connects on first use and again after a failure. Callers set their own time limit.
pub struct RemoteInspector {
    node: NodeId,
    address: String,
    config: LinkConfig,
    client: Mutex<Option<NodeConsoleClient<Channel>>>,
}

impl RemoteInspector {
    /// Inspects the node at `address` (`host:port`). Refuses a node with a different ID.
    pub fn new(node: NodeId, address: &str, config: LinkConfig) -> Self {
        Self {
            node,
            address: address.to_owned(),
            config,
            client: Mutex::default(),
        }
    }

    /// Returns the node's address.
    pub fn address(&self) -> &str {
        &self.address
    }

    async fn client(&self) -> Result<NodeConsoleClient<Channel>, InspectError> {
        if let Some(client) = &*self.client.lock() {
            return Ok(client.clone());
        }
        let channel = dial::connect(&self.address, &self.config).await;
        let channel = channel.map_err(|error| InspectError::Unreachable(error.to_string()))?;
        let client = NodeConsoleClient::new(channel).max_decoding_message_size(LONGEST_ANSWER);
        *self.client.lock() = Some(client.clone());
        Ok(client)
    }

    async fn ask<T: DeserializeOwned>(&self, what: Question) -> Result<T, InspectError> {
        let request = InspectRequest {
            to: self.node.to_string(),
            what: Some(what),
        };
        let answer = self.client().await?.inspect(request).await;
        let answer = answer.map_err(|status| self.refused(&status))?;
        let report = answer.into_inner().report;
        if report.is_empty() {
            return Err(InspectError::Unsupported);
        }
        serde_json::from_slice(&report)
            .map_err(|error| InspectError::Failed(format!("its report cannot be read: {error}")))
    }

    async fn act(&self, what: act_request::What) -> Result<bool, InspectError> {
        let request = ActRequest {
            to: self.node.to_string(),
            what: Some(what),
        };
        let answer = self.client().await?.act(request).await;
        let answer = answer.map_err(|status| self.refused(&status))?;
        Ok(answer.into_inner().done)
    }

    fn refused(&self, status: &Status) -> InspectError {
        let text = status.message().to_owned();
        match status.code() {
            Code::Unimplemented => InspectError::Unsupported,
            Code::Internal | Code::InvalidArgument => InspectError::Failed(text),
            _ => {
                *self.client.lock() = None;
                InspectError::Unreachable(text)
            }
        }
    }
}

#[async_trait]
impl Inspector for RemoteInspector {
    async fn node(&self) -> Result<NodeReport, InspectError> {
        self.ask(Question::Node(InspectNode {})).await
    }

    async fn sessions(
        &self,
        filter: &str,
        limit: usize,
    ) -> Result<Listing<SessionReport>, InspectError> {
        let question = InspectSessions {
            filter: filter.to_owned(),
            limit: most(limit),
        };
        self.ask(Question::Sessions(question)).await
    }

    async fn session(&self, session: &SessionId) -> Result<Option<SessionDetail>, InspectError> {
        let session = session.to_string();
        self.ask(Question::Session(InspectSession { session }))
            .await
    }

    async fn calls(&self, limit: usize) -> Result<Listing<CallReport>, InspectError> {
        let limit = most(limit);
        self.ask(Question::Calls(InspectCalls { limit })).await
    }

    async fn errors(&self, limit: usize) -> Result<Listing<ErrorReport>, InspectError> {
        let limit = most(limit);
        self.ask(Question::Errors(InspectErrors { limit })).await
    }

    async fn tools(&self, filter: &str, limit: usize) -> Result<Listing<ToolReport>, InspectError> {
        let question = InspectTools {
            filter: filter.to_owned(),
            limit: most(limit),
        };
        self.ask(Question::Tools(question)).await
    }

    async fn tool(&self, name: &str) -> Result<Option<ToolDetail>, InspectError> {
        let name = name.to_owned();
        self.ask(Question::Tool(InspectTool { name })).await
    }

    async fn end_session(&self, session: &SessionId) -> Result<bool, InspectError> {
        let session = session.to_string();
        self.act(act_request::What::EndSession(EndSession { session }))
            .await
    }

    async fn cancel_call(&self, call: CallId, reason: &str) -> Result<bool, InspectError> {
        let cancel = CancelCall {
            call: call.to_string(),
            reason: reason.to_owned(),
        };
        self.act(act_request::What::CancelCall(cancel)).await
    }
}

fn most(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}
