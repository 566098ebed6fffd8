//! Reads and writes MCP messages, without I/O.
//!
//! Parts that Shoal need not read stay text ([`RawJson`]), so unknown fields, key order and number spelling survive.

mod capabilities;
mod compose;
mod depth;
mod ends;
mod envelope;
mod error;
mod event_id;
mod headers;
mod index;
mod input_responses;
mod json;
mod lengths;
mod log_level;
mod meta;
mod method;
mod numbers;
mod object;
mod older_schemas;
mod param_headers;
mod property_names;
mod request_digest;
mod request_id;
mod request_state;
mod revision;
mod shown;
mod sse;
pub mod task;
mod tokens;
mod tool_cost;
mod trace_context;
mod unique;
mod unseen;

pub use capabilities::{ClientCapability, declares};
pub use compose::{
    batch, error_response, error_response_without_id, notification, request, response,
};
pub use depth::nesting_within;
pub use ends::{Ends, Spotted};
pub use envelope::{Body, InvalidMessage, Message, Notification, Outcome, Request, Response};
pub use error::{LONGEST_MESSAGE, RpcError, code};
pub use event_id::{EventId, InvalidEventId, StreamId};
pub use headers::{
    EncodedValue, HeaderMismatch, LAST_EVENT_ID, MCP_METHOD, MCP_NAME, MCP_PARAM_PREFIX,
    MCP_PROTOCOL_VERSION, MCP_SESSION_ID, decode_value, encode_value, expect_equal, expect_plain,
};
pub use index::Index;
pub use input_responses::input_responses;
pub use json::RawJson;
pub use lengths::{LONGEST_ID, LONGEST_METHOD, LONGEST_REASON, LONGEST_URI, Longest};
pub use log_level::LogLevel;
pub use meta::{
    CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROGRESS_TOKEN, PROTOCOL_VERSION, RequestMeta,
    SERVER_INFO, SUBSCRIPTION_ID,
};
pub use method::{Method, Named};
pub use numbers::is_rounded;
pub use object::{RawObject, members};
pub use older_schemas::{rewrite_exclusive_limits, rewrite_item_list, rewrite_required_flags};
pub use param_headers::{InvalidParamHeader, ParamHeader, ParamHeaders};
pub use property_names::{
    free_name, is_legal_name, is_opaque_name, legal_name, may_be_listed_as, name_digest,
    shortened_name,
};
pub use request_digest::RequestDigest;
pub use request_id::RequestId;
pub use request_state::{Continuation, KeyRing, RefusedState, RequestState, SealKey, StateKind};
pub use revision::{Era, Revision, UnsupportedRevision};
pub use shown::shown;
pub use sse::{EventTooLarge, SseEvent, SseParser};
pub use tokens::{Token, Tokens, utf16_of};
pub use tool_cost::ToolCost;
pub use trace_context::TraceContext;
pub use unseen::is_unseen;
