use crate::{Method, RawJson, RawObject, RpcError, code};

/// A capability that a server-to-client request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientCapability {
    /// `sampling`
    Sampling,
    /// `elicitation` (form mode)
    ElicitationForm,
    /// `elicitation.url`
    ElicitationUrl,
    /// `roots`
    Roots,
}

impl ClientCapability {
    /// Returns the capability that a server's request needs; `None` if the method is not allowed.
    pub fn needed_by(method: &Method, params: Option<&RawJson>) -> Option<Self> {
        match method {
            Method::CreateMessage => Some(Self::Sampling),
            Method::RootsList => Some(Self::Roots),
            Method::Elicit => {
                let mode = params
                    .and_then(RawObject::of)
                    .and_then(|params| params.get("mode"))
                    .and_then(|mode| mode.string());
                Some(match mode.as_deref() {
                    Some("url") => Self::ElicitationUrl,
                    _ => Self::ElicitationForm,
                })
            }
            _ => None,
        }
    }

    /// Returns `ClientCapabilities` with only this one.
    pub fn as_capabilities(self) -> RawJson {
        RawJson::from_static(match self {
            Self::Sampling => r#"{"sampling":{}}"#,
            Self::ElicitationForm => r#"{"elicitation":{}}"#,
            Self::ElicitationUrl => r#"{"elicitation":{"url":{}}}"#,
            Self::Roots => r#"{"roots":{}}"#,
        })
    }

    /// Returns a `MissingRequiredClientCapabilityError` (2026-07-28).
    pub fn missing(self) -> RpcError {
        let data = format!(
            r#"{{"requiredCapabilities":{}}}"#,
            self.as_capabilities().as_str()
        );
        RpcError::new(
            code::MISSING_CLIENT_CAPABILITY,
            format!("the request needs the client capability {self}, which was not declared"),
        )
        .with_data(RawJson::from_valid(data.into()))
    }
}

impl std::fmt::Display for ClientCapability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sampling => "sampling",
            Self::ElicitationForm => "elicitation",
            Self::ElicitationUrl => "elicitation.url",
            Self::Roots => "roots",
        })
    }
}

/// Whether `ClientCapabilities` declare `needed`. An empty `elicitation` means form mode.
pub fn declares(capabilities: &RawJson, needed: ClientCapability) -> bool {
    let Some(capabilities) = RawObject::of(capabilities) else {
        return false;
    };
    let elicitation = || {
        capabilities
            .get("elicitation")
            .and_then(|e| RawObject::of(&e))
    };
    match needed {
        ClientCapability::Sampling => capabilities.has("sampling"),
        ClientCapability::Roots => capabilities.has("roots"),
        ClientCapability::ElicitationForm => {
            elicitation().is_some_and(|modes| modes.has("form") || !modes.has("url"))
        }
        ClientCapability::ElicitationUrl => elicitation().is_some_and(|modes| modes.has("url")),
    }
}
