use std::sync::Arc;

use bytes::Bytes;
use shoal_ports::{
    Attach, Binding, Call, CallId, Caller, ClientInfo, Epoch, ForwardedHeaders, LedgerNumber,
    LogFilter, MayStart, Principal, Repeat, SessionId, WorkerId,
};
use shoal_protocol::{LogLevel, Method, RawJson, Revision, TraceContext};
use tokio::time::Instant;

use super::trace::{trace_in, trace_out};
use super::{duration, millis, sixteen, trusted};
use crate::error::Malformed;
use crate::proto::types::v1 as wire;
use crate::proto::worker::v1 as worker;

pub(crate) fn call_out(call: &Call, ledger: Option<LedgerNumber>, now: Instant) -> wire::Call {
    wire::Call {
        id: id_out(call.id),
        method: call.method.as_str().to_owned(),
        params: call.params.as_ref().map(RawJson::to_bytes),
        caller: Some(caller_out(&call.caller)),
        progress_token: call.progress_token.as_ref().map(RawJson::to_bytes),
        log_level: log_out(call.log).into(),
        timeout_ms: millis(call.deadline.saturating_duration_since(now)),
        durability: repeat_out(call.repeat).into(),
        traceparent: call.trace.as_ref().map(TraceContext::to_traceparent),
        tracestate: trace_state(call),
        worker: call.binding.as_ref().map(|to| to.worker.to_string()),
        ledger: ledger.map(ledger_out),
        attach_only: call.may_start == MayStart::No,
        epoch: call.epoch.map(|epoch| epoch.0),
    }
}

/// Returns the call, and the worker's ledger number that its sender knew.
pub(crate) fn call_in(
    call: wire::Call,
    now: Instant,
) -> Result<(Call, Option<LedgerNumber>), Malformed> {
    let caller = call
        .caller
        .ok_or(Malformed("call: the caller is missing"))?;
    let state = call.tracestate.as_deref();
    let trace =
        (call.traceparent.as_deref()).and_then(|parent| TraceContext::parse_trusted(parent, state));
    let ledger = call.ledger.map(ledger_in);
    let binding = call.worker.map(|worker| Binding {
        worker: WorkerId::new(worker),
        ledger,
    });
    let call = Call {
        id: id_in(&call.id)?,
        method: Method::from_name(&call.method),
        params: call.params.map(trusted),
        caller: Arc::new(caller_in(caller)?),
        progress_token: call.progress_token.map(trusted),
        log: log_in(call.log_level),
        deadline: now + duration(call.timeout_ms),
        repeat: repeat_in(call.durability),
        trace,
        binding,
        // The node that sent the call has asked the person already.
        may_start: match call.attach_only {
            true => MayStart::No,
            false => MayStart::Yes,
        },
        epoch: call.epoch.map(Epoch),
    };
    Ok((call, ledger))
}

pub(crate) fn attach_out(flight: u64, attach: &Attach) -> worker::Attach {
    worker::Attach {
        flight,
        call: id_out(attach.call),
        after: attach.after,
        trace: trace_out(attach.trace.as_ref()),
        reader: attach.reader.unwrap_or(0),
        epoch: attach.epoch.map(|epoch| epoch.0),
    }
}

pub(crate) fn attach_in(attach: worker::Attach) -> Result<Attach, Malformed> {
    Ok(Attach {
        call: id_in(&attach.call)?,
        after: attach.after,
        reader: (attach.reader > 0).then_some(attach.reader),
        epoch: attach.epoch.map(Epoch),
        trace: trace_in(attach.trace),
    })
}

fn trace_state(call: &Call) -> Option<String> {
    let state = call.trace.as_ref().and_then(TraceContext::tracestate);
    state.map(str::to_owned)
}

pub(crate) fn id_out(id: CallId) -> Bytes {
    Bytes::copy_from_slice(id.as_bytes())
}

pub(crate) fn id_in(id: &[u8]) -> Result<CallId, Malformed> {
    sixteen(id, "call id").map(CallId::from_bytes)
}

fn caller_out(caller: &Caller) -> wire::Caller {
    wire::Caller {
        principal: caller.principal.as_str().to_owned(),
        session: caller.session.as_ref().map(ToString::to_string),
        revision: caller.revision.as_str().to_owned(),
        client_info: (caller.client_info.as_ref()).map(|info| info.as_json().to_bytes()),
        capabilities: caller.capabilities.to_bytes(),
        headers: headers_out(&caller.headers),
    }
}

fn caller_in(caller: wire::Caller) -> Result<Caller, Malformed> {
    Ok(Caller {
        principal: Principal::new(caller.principal),
        session: caller.session.map(SessionId::new),
        revision: revision_in(&caller.revision)?,
        client_info: (caller.client_info).map(|info| ClientInfo::new(trusted(info))),
        capabilities: trusted(caller.capabilities),
        headers: headers_in(caller.headers),
        grant: None,
    })
}

pub(crate) fn headers_out(headers: &ForwardedHeaders) -> Vec<wire::Header> {
    let headers = headers.iter().map(|(name, value)| wire::Header {
        name: name.to_string(),
        value: value.clone(),
    });
    headers.collect()
}

pub(crate) fn headers_in(headers: Vec<wire::Header>) -> ForwardedHeaders {
    let headers = headers.into_iter();
    ForwardedHeaders::new(headers.map(|header| (header.name.into(), header.value)))
}

pub(crate) fn revision_in(revision: &str) -> Result<Revision, Malformed> {
    revision.parse().map_err(|_| Malformed("MCP revision"))
}

pub(crate) fn ledger_out(ledger: LedgerNumber) -> wire::Ledger {
    wire::Ledger {
        incarnation: ledger.incarnation,
        number: ledger.number,
    }
}

pub(crate) fn ledger_in(ledger: wire::Ledger) -> LedgerNumber {
    LedgerNumber {
        incarnation: ledger.incarnation,
        number: ledger.number,
    }
}

pub(crate) fn repeat_out(repeat: Repeat) -> wire::Durability {
    match repeat {
        Repeat::Safe => wire::Durability::Repeatable,
        Repeat::Never => wire::Durability::Journaled,
    }
}

pub(crate) fn repeat_in(durability: i32) -> Repeat {
    match wire::Durability::try_from(durability) {
        Ok(wire::Durability::Repeatable) => Repeat::Safe,
        // Do not repeat a call because of an unknown value.
        _ => Repeat::Never,
    }
}

macro_rules! levels {
    ($($level:ident)+) => {
        fn log_out(log: LogFilter) -> wire::LogLevel {
            match log {
                LogFilter::Off => wire::LogLevel::Unspecified,
                $(LogFilter::AtLeast(LogLevel::$level) => wire::LogLevel::$level,)+
            }
        }

        fn log_in(level: i32) -> LogFilter {
            match wire::LogLevel::try_from(level) {
                $(Ok(wire::LogLevel::$level) => LogFilter::AtLeast(LogLevel::$level),)+
                Ok(wire::LogLevel::Unspecified) | Err(_) => LogFilter::Off,
            }
        }
    };
}

levels! { Debug Info Notice Warning Error Critical Alert Emergency }
