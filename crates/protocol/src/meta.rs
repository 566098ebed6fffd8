//! A request's `_meta`: progress token, protocol fields, trace context.

use crate::object::named_spans;
use crate::{LogLevel, RawJson, RawObject, RpcError};

/// The client's token for progress notifications.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The request's protocol version (modern).
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The client's name and version (modern).
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The client's capabilities for this request (modern).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The least severe log level of messages for this request (modern).
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The id of a notification's listen request (modern).
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The server's name and version, sent with results (modern).
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

impl RawJson {
    /// Removes a member of `_meta`, and `_meta` itself if it is then empty.
    #[must_use]
    pub fn without_meta(self, name: &str) -> Self {
        let meta = self.member("_meta").as_ref().and_then(RawObject::of);
        let (Some(mut meta), Some(mut params)) = (meta, RawObject::of(&self)) else {
            return self;
        };
        if meta.remove(name).is_none() {
            return self;
        }
        match meta.is_empty() {
            true => drop(params.remove("_meta")),
            false => params.set("_meta", meta.to_json()),
        }
        params.to_json()
    }
}

/// Members of `_meta` that Shoal reads.
#[derive(Clone, Debug, Default)]
pub struct RequestMeta {
    /// The client's progress token, as sent.
    pub progress_token: Option<RawJson>,
    /// The request's protocol version.
    pub protocol_version: Option<String>,
    /// The client's `Implementation`.
    pub client_info: Option<RawJson>,
    /// The client's `ClientCapabilities`.
    pub client_capabilities: Option<RawJson>,
    /// The raw log level; see [`RequestMeta::log_level`].
    pub raw_log_level: Option<RawJson>,
    /// The client's W3C `traceparent`.
    pub traceparent: Option<String>,
    /// The client's W3C `tracestate`.
    pub tracestate: Option<String>,
}

impl RequestMeta {
    /// Reads `_meta` of `params`.
    pub fn of(params: Option<&RawJson>) -> Self {
        let meta = params.and_then(|params| params.member("_meta"));
        meta.map(|meta| Self::of_meta(&meta)).unwrap_or_default()
    }

    fn of_meta(meta: &RawJson) -> Self {
        let mut read = Self::default();
        let (mut version, mut parent, mut state) = (None, None, None);
        for (name, value) in named_spans(meta.as_bytes()) {
            let member = match &*name {
                PROGRESS_TOKEN => &mut read.progress_token,
                PROTOCOL_VERSION => &mut version,
                CLIENT_INFO => &mut read.client_info,
                CLIENT_CAPABILITIES => &mut read.client_capabilities,
                LOG_LEVEL => &mut read.raw_log_level,
                "traceparent" => &mut parent,
                "tracestate" => &mut state,
                _ => continue,
            };
            // The first of equal names counts.
            member.get_or_insert_with(|| meta.part(value));
        }
        let string = |value: Option<RawJson>| value.and_then(|value| value.string());
        Self {
            progress_token: read.progress_token.filter(|it| !it.is_null()),
            raw_log_level: read.raw_log_level.filter(|it| !it.is_null()),
            protocol_version: string(version),
            client_capabilities: read.client_capabilities.filter(RawJson::is_object),
            traceparent: string(parent),
            tracestate: string(state),
            ..read
        }
    }

    /// Returns the log level that the client wants.
    ///
    /// # Errors
    /// -32602 if the level is unknown.
    pub fn log_level(&self) -> Result<Option<LogLevel>, RpcError> {
        self.raw_log_level
            .as_ref()
            .map(|raw| {
                let name = raw.string().unwrap_or_else(|| raw.as_str().to_owned());
                name.parse()
                    .map_err(|e: String| RpcError::invalid_params(format!("{LOG_LEVEL}: {e}")))
            })
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::RequestMeta;
    use crate::RawJson;

    #[test]
    fn names_are_read_with_their_escapes_and_the_first_of_two_counts() {
        let text = r#"{"_meta":{"other":[1],"\u0070rogressToken":1,"progressToken":2,"traceparent":"00-\u0061",
            "io.modelcontextprotocol/clientCapabilities":[]},"name":"echo"}"#;
        let meta = RequestMeta::of(Some(&RawJson::from_static(text)));
        assert_eq!(meta.progress_token, Some(RawJson::from_static("1")));
        assert_eq!(meta.traceparent.as_deref(), Some("00-a"));
        assert_eq!(meta.client_capabilities, None, "it is no object");
        let unset = r#"{"_meta":{"progressToken":null,"io.modelcontextprotocol/logLevel":null}}"#;
        let unset = RequestMeta::of(Some(&RawJson::from_static(unset)));
        assert_eq!((unset.progress_token, unset.raw_log_level), (None, None));
    }

    #[test]
    fn one_member_of_meta_can_be_left_out() {
        for (text, left) in [
            (
                r#"{"uri":"a","_meta":{"x":3,"b":1}}"#,
                r#"{"uri":"a","_meta":{"b":1}}"#,
            ),
            (r#"{"uri":"a","_meta":{"x":3}}"#, r#"{"uri":"a"}"#),
            (
                r#"{"uri": "a", "_meta":{"b":1}}"#,
                r#"{"uri": "a", "_meta":{"b":1}}"#,
            ),
            (r#"{"_meta":[]}"#, r#"{"_meta":[]}"#),
            ("[]", "[]"),
        ] {
            let params = RawJson::from_static(text).without_meta("x");
            assert_eq!(params.as_str(), left, "{text}");
        }
    }
}
