//! Rewrites a call's parameters for its server.

use shoal_ports::{Call, LogFilter};
use shoal_protocol::task::{declares_tasks, with_tasks, without_tasks};
use shoal_protocol::{
    CLIENT_CAPABILITIES, CLIENT_INFO, Era, LOG_LEVEL, Method, PROGRESS_TOKEN, PROTOCOL_VERSION,
    RawJson, RawObject, Revision,
};

use super::greeting::Greeting;

const META: &str = "_meta";
const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";
const MODERN_META: [&str; 4] = [
    PROTOCOL_VERSION,
    CLIENT_INFO,
    CLIENT_CAPABILITIES,
    LOG_LEVEL,
];
const MODERN_PARAMS: [&str; 2] = ["inputResponses", "requestState"];

/// Rewrites a call's parameters for its server. Members without changes keep their bytes. `token` replaces
/// the caller's progress token, which may equal another caller's.
pub(crate) fn for_server(call: &Call, server: &Greeting, token: u64) -> Option<RawJson> {
    let mut params = call.params.as_ref().and_then(RawObject::of);
    let had_meta = params.as_ref().is_some_and(|params| params.has(META));
    let meta = params.as_ref().and_then(|params| last(params, META));
    let mut meta = meta.as_ref().and_then(RawObject::of).unwrap_or_default();

    if call.progress_token.is_some() {
        put(&mut meta, PROGRESS_TOKEN, RawJson::of(&token));
    } else {
        drop_all(&mut meta, PROGRESS_TOKEN);
    }
    if let Some(parent) = &call.trace {
        put(
            &mut meta,
            TRACEPARENT,
            RawJson::of(&parent.to_traceparent()),
        );
        match parent.tracestate() {
            Some(state) => put(&mut meta, TRACESTATE, RawJson::of(&state)),
            None => drop_all(&mut meta, TRACESTATE),
        }
    }
    match server.era {
        Era::Legacy => {
            for name in MODERN_META {
                drop_all(&mut meta, name);
            }
            if let Some(params) = params
                .as_mut()
                .filter(|_| !call.method.may_be_of_extension())
            {
                for name in MODERN_PARAMS {
                    drop_all(params, name);
                }
            }
        }
        Era::Modern => {
            let tasks = server.tasks && call.method == Method::ToolsCall;
            describe_caller(&mut meta, call, tasks);
        }
    }

    if meta.is_empty() {
        if let Some(params) = params.as_mut().filter(|_| had_meta) {
            drop_all(params, META);
        }
    } else {
        put(params.get_or_insert_default(), META, meta.to_json());
    }
    params.map(|params| params.to_json())
}

pub(crate) fn about_task(call: &Call, mut params: RawObject) -> RawJson {
    let mut meta = RawObject::default();
    describe_caller(&mut meta, call, true);
    params.set(META, meta.to_json());
    params.to_json()
}

fn describe_caller(meta: &mut RawObject, call: &Call, tasks: bool) {
    let version = RawJson::of(Revision::LATEST.as_str());
    put(meta, PROTOCOL_VERSION, version);
    match &call.caller.client_info {
        Some(info) => put(meta, CLIENT_INFO, info.as_json().clone()),
        None => drop_all(meta, CLIENT_INFO),
    }
    let capabilities = with_or_without_tasks(&call.caller.capabilities, tasks);
    put(meta, CLIENT_CAPABILITIES, capabilities);
    match call.log {
        LogFilter::AtLeast(level) => put(meta, LOG_LEVEL, RawJson::of(&level)),
        LogFilter::Off => drop_all(meta, LOG_LEVEL),
    }
}

/// Adds or removes the client's capability of tasks. A server that makes tasks always sees it, because Shoal
/// follows tasks for every client.
fn with_or_without_tasks(capabilities: &RawJson, tasks: bool) -> RawJson {
    match (declares_tasks(capabilities), tasks) {
        (false, true) => with_tasks(capabilities),
        (true, false) => without_tasks(capabilities),
        _ => capabilities.clone(),
    }
}

pub(crate) fn with_own_meta(
    mut params: RawObject,
    client_info: RawJson,
    capabilities: RawJson,
) -> RawJson {
    let mut meta = RawObject::default();
    meta.set(PROTOCOL_VERSION, RawJson::of(Revision::LATEST.as_str()));
    meta.set(CLIENT_INFO, client_info);
    meta.set(CLIENT_CAPABILITIES, capabilities);
    params.set(META, meta.to_json());
    params.to_json()
}

pub(crate) fn restore_token(params: &RawJson, token: RawJson) -> RawJson {
    let mut params = RawObject::of(params).unwrap_or_default();
    put(&mut params, PROGRESS_TOKEN, token);
    params.to_json()
}

/// Returns the last value of a repeated name, because most parsers use the last one.
fn last(object: &RawObject, name: &str) -> Option<RawJson> {
    let found = object.iter().filter(|(key, _)| key == name).last();
    found.map(|(_, value)| value)
}

/// Sets a member in place. Removes further members of the same name, because such a member might win at the
/// server.
fn put(object: &mut RawObject, name: &str, value: RawJson) {
    if object.iter().filter(|(key, _)| key == name).count() > 1 {
        drop_all(object, name);
    }
    object.set(name, value);
}

fn drop_all(object: &mut RawObject, name: &str) {
    while object.remove(name).is_some() {}
}

#[cfg(test)]
mod tests;
