//! Adapts results and errors to the caller's revision with as little change as possible.

mod legacy;

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use shoal_ports::{CacheScope, CallOutcome};
use shoal_protocol::{
    Era, Method, RawJson, RawObject, Revision, RpcError, SERVER_INFO, code, members,
};

use crate::config::Config;

/// From 2026-07-28 on, the specification reserves these codes.
const RESERVED_FIRST: i64 = -32_020;
const RESERVED_LAST: i64 = -32_099;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    No,
    Perhaps,
}

#[derive(Debug)]
pub(crate) struct Shaping {
    server_info: RawJson,
    /// `"_meta":{"io.modelcontextprotocol/serverInfo":…},`
    meta: Bytes,
    /// Callers may list and read different things, so no cache may give one caller's results to another.
    callers_differ: bool,
    list_ttl: Duration,
    list_scope: CacheScope,
    read: CacheHint,
}

#[derive(Debug)]
struct CacheHint {
    /// `"ttlMs":…,`
    ttl: String,
    /// `"cacheScope":"…",`
    scope: String,
}

impl CacheHint {
    fn new(ttl: Duration, scope: CacheScope) -> Self {
        Self {
            ttl: format!(r#""ttlMs":{},"#, ttl.as_millis()),
            scope: format!(r#""cacheScope":"{}","#, scope.as_str()),
        }
    }
}

impl Shaping {
    pub(crate) fn new(server_info: &RawJson, config: &Config, is_for_all: bool) -> Self {
        let callers_differ = config.policies.is_some() || !is_for_all;
        let scope = |scope| match callers_differ {
            true => CacheScope::Private,
            false => scope,
        };
        let meta = format!(r#""_meta":{{"{SERVER_INFO}":{}}},"#, server_info.as_str());
        Self {
            server_info: server_info.clone(),
            meta: meta.into(),
            callers_differ,
            list_ttl: config.catalog.list_ttl.get(),
            list_scope: scope(config.catalog.list_cache_scope),
            read: CacheHint::new(
                config.catalog.read_ttl.get(),
                scope(config.catalog.read_cache_scope),
            ),
        }
    }

    /// `typed` tells whether a result may have a `resultType`.
    pub(crate) fn outcome(
        &self,
        revision: Revision,
        method: &Method,
        outcome: CallOutcome,
        typed: Typed,
    ) -> CallOutcome {
        match (revision.era(), outcome) {
            (Era::Legacy, CallOutcome::Result(result)) => CallOutcome::Result(match typed {
                Typed::No => result,
                Typed::Perhaps => legacy::result(method, result),
            }),
            (Era::Modern, CallOutcome::Result(result)) => {
                let hint = matches!(method, Method::ResourcesRead).then_some(&self.read);
                let result = match hint.is_some() && self.callers_differ {
                    true => without_scope(result),
                    false => result,
                };
                CallOutcome::Result(self.modern(&result, hint))
            }
            (_, CallOutcome::Error(error)) => CallOutcome::Error(known_to(revision, error)),
            (_, outcome) => outcome,
        }
    }

    /// `ttl_ms` is the backends' limit on caching.
    pub(crate) fn list(&self, page: &RawJson, ttl_ms: Option<u64>) -> RawJson {
        let own = ttl_ms.map_or(Duration::MAX, Duration::from_millis);
        let hint = CacheHint::new(self.list_ttl.min(own), self.list_scope);
        self.modern(page, Some(&hint))
    }

    /// Inserts members that a modern result needs and lacks. Other bytes stay, but `_meta` gets this server's
    /// `serverInfo`.
    fn modern(&self, result: &RawJson, hint: Option<&CacheHint>) -> RawJson {
        if !result.is_object() {
            return result.clone();
        }
        let text = result.to_bytes();
        let found = ResultMembers::in_object(&text);
        let mut out = BytesMut::with_capacity(text.len() + self.meta.len() + 128);
        out.put_u8(b'{');
        if !found.result_type {
            out.put_slice(br#""resultType":"complete","#);
        }
        // Only complete results have cache hints (2026-07-28, Caching).
        if let Some(hint) = hint.filter(|_| !found.input_required) {
            if !found.ttl {
                out.put_slice(hint.ttl.as_bytes());
            }
            if !found.scope {
                out.put_slice(hint.scope.as_bytes());
            }
        }
        match found.meta {
            None => {
                out.put_slice(&self.meta);
                put_rest(&mut out, &text[1..], found.any);
            }
            Some(meta) => {
                let start = offset_in(&text, &meta);
                put_rest(&mut out, &text[1..start], found.any);
                out.put_slice(self.with_server_info(&meta).as_bytes());
                out.put_slice(&text[start + meta.len()..]);
            }
        }
        RawJson::from_valid(out.freeze())
    }

    fn with_server_info(&self, meta: &Bytes) -> RawJson {
        let meta = RawJson::from_valid(meta.clone());
        let mut object = RawObject::of(&meta).unwrap_or_default();
        if object.has(SERVER_INFO) {
            object.set(SERVER_INFO, self.server_info.clone());
            return object.to_json();
        }
        if object.is_empty() {
            object.set(SERVER_INFO, self.server_info.clone());
            return object.to_json();
        }
        let head = format!(r#"{{"{SERVER_INFO}":{},"#, self.server_info.as_str());
        let mut text = BytesMut::with_capacity(head.len() + meta.len());
        text.put_slice(head.as_bytes());
        text.put_slice(&meta.as_bytes()[1..]);
        RawJson::from_valid(text.freeze())
    }
}

/// Removes the backend's cache scope, because the backend knows neither Shoal's rules nor its callers.
fn without_scope(result: RawJson) -> RawJson {
    let mut object = match RawObject::of(&result) {
        Some(object) if object.has("cacheScope") => object,
        _ => return result,
    };
    while object.remove("cacheScope").is_some() {}
    object.to_json()
}

fn known_to(revision: Revision, mut error: RpcError) -> RpcError {
    let is_modern = revision.era() == Era::Modern;
    match error.code {
        code::RESOURCE_NOT_FOUND if is_modern => error.code = code::INVALID_PARAMS,
        code::MISSING_CLIENT_CAPABILITY if is_modern => {}
        // Before 2026-07-28, a missing capability has the code of an invalid request.
        code::MISSING_CLIENT_CAPABILITY => error.code = code::INVALID_REQUEST,
        code::URL_ELICITATION_REQUIRED if revision == Revision::V2025_11_25 => {}
        // The first two come to clients only from an edge. The third exists only in 2025-11-25.
        code::HEADER_MISMATCH | code::UNSUPPORTED_VERSION | code::URL_ELICITATION_REQUIRED => {
            error = foreign(error);
        }
        RESERVED_LAST..=RESERVED_FIRST if is_modern => error = foreign(error),
        _ => {}
    }
    error
}

fn foreign(error: RpcError) -> RpcError {
    let mut said = RawObject::default();
    said.set("code", RawJson::of(&error.code));
    if let Some(data) = error.data {
        said.set("data", data);
    }
    let mut data = RawObject::default();
    data.set("backendError", said.to_json());
    RpcError::internal(error.message).with_data(data.to_json())
}

fn offset_in(text: &Bytes, value: &Bytes) -> usize {
    value.as_ptr() as usize - text.as_ptr() as usize
}

fn put_rest(out: &mut BytesMut, rest: &[u8], any: bool) {
    if !any && out.last() == Some(&b',') {
        out.truncate(out.len() - 1);
    }
    out.put_slice(rest);
}

#[derive(Default)]
struct ResultMembers {
    any: bool,
    result_type: bool,
    input_required: bool,
    ttl: bool,
    scope: bool,
    meta: Option<Bytes>,
}

impl ResultMembers {
    fn in_object(text: &Bytes) -> Self {
        let mut found = Self::default();
        for (key, value) in members(text) {
            found.any = true;
            match key.as_ref() {
                br#""resultType""# => {
                    found.result_type = true;
                    found.input_required = value.as_ref() == br#""input_required""#;
                }
                br#""ttlMs""# => found.ttl = true,
                br#""cacheScope""# => found.scope = true,
                br#""_meta""# => found.meta = Some(value),
                _ => {}
            }
        }
        found
    }
}
