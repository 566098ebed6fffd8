use std::time::Instant;

use http::request::Parts;
use shoal_ports::SessionId;
use shoal_protocol::{Method, RawJson, RequestId};

pub(crate) struct MessageArrival<'a> {
    pub(crate) began: Instant,
    pub(crate) head: &'a Parts,
    pub(crate) method: &'a Method,
    pub(crate) params: Option<&'a RawJson>,
    pub(crate) id: Option<&'a RequestId>,
    pub(crate) session: Option<&'a SessionId>,
}
