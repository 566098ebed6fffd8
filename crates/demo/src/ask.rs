//! Errors of questions that the client does not support or answer.
#![expect(
    deprecated,
    reason = "sampling and roots remain part of every revision"
)]

use rmcp::{
    ErrorData, RoleServer, ServiceError,
    handler::server::tool::IntoCallToolResult,
    model::{
        CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, ElicitationCapability,
        ErrorCode, FormElicitationCapability, ProtocolVersion, UrlElicitationCapability,
    },
    service::{ElicitationError, RequestContext},
};

#[derive(Clone, Copy)]
pub(crate) enum Need {
    Form,
    Url,
    Sampling,
    Roots,
}

impl Need {
    pub(crate) fn check(self, ctx: &RequestContext<RoleServer>) -> Result<(), AskRefusal> {
        let declared = ctx.client_capabilities().unwrap_or_default();
        if self.met_by(&declared) {
            return Ok(());
        }
        // -32021 is new in 2026-07-28. An older client would show its user only the number.
        if ctx.protocol_version() >= Some(ProtocolVersion::V_2026_07_28) {
            Err(AskRefusal::Protocol(self.missing()))
        } else {
            Err(AskRefusal::Told(format!(
                "this client does not support {}",
                self.name()
            )))
        }
    }

    pub(crate) fn met_by(self, declared: &ClientCapabilities) -> bool {
        let elicitation = declared.elicitation.as_ref();
        match self {
            // Before modes existed, clients declared forms by a bare `elicitation: {}`.
            Self::Form => {
                elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
            }
            Self::Url => elicitation.is_some_and(|modes| modes.url.is_some()),
            Self::Sampling => declared.sampling.is_some(),
            Self::Roots => declared.roots.is_some(),
        }
    }

    fn missing(self) -> ErrorData {
        let builder = ClientCapabilities::builder();
        ErrorData::missing_required_client_capability(match self {
            Self::Form => builder
                .enable_elicitation_with(
                    ElicitationCapability::new().with_form(FormElicitationCapability::new()),
                )
                .build(),
            Self::Url => builder
                .enable_elicitation_with(
                    ElicitationCapability::new().with_url(UrlElicitationCapability::new()),
                )
                .build(),
            Self::Sampling => builder.enable_sampling().build(),
            Self::Roots => builder.enable_roots().build(),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Form => "form elicitation",
            Self::Url => "URL elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

#[derive(Debug)]
pub(crate) enum AskRefusal {
    Protocol(ErrorData),
    Told(String),
}

impl From<ServiceError> for AskRefusal {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error)
                if error.code == ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY =>
            {
                Self::Protocol(error)
            }
            ServiceError::McpError(error) => {
                Self::Told(format!("the client refused to be asked: {}", error.message))
            }
            error => Self::Told(format!("the client did not answer: {error}")),
        }
    }
}

impl From<ElicitationError> for AskRefusal {
    fn from(error: ElicitationError) -> Self {
        match error {
            ElicitationError::Service(error) => error.into(),
            error => Self::Told(format!("the client's answer cannot be used: {error}")),
        }
    }
}

impl From<ErrorData> for AskRefusal {
    fn from(error: ErrorData) -> Self {
        Self::Protocol(error)
    }
}

/// For requests whose result cannot report an error.
impl From<AskRefusal> for ErrorData {
    fn from(refused: AskRefusal) -> Self {
        match refused {
            AskRefusal::Protocol(error) => error,
            AskRefusal::Told(text) => Self::invalid_request(text, None),
        }
    }
}

impl IntoCallToolResult for AskRefusal {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        match self {
            Self::Protocol(error) => Err(error),
            Self::Told(text) => Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into()),
        }
    }
}
