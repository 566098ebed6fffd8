use std::time::SystemTime;

use opentelemetry::trace::{Event, SpanKind, Status};
use shoal_protocol::TraceContext;

use super::value::attributes;
use super::wire::{bytes, fixed32, number, string, time};
use crate::trace::SpanData;

/// Bit 8 says whether [`IS_REMOTE`] is known, bit 9 that the context is remote.
const IS_REMOTE_KNOWN: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

const USUAL: usize = 512;

pub(crate) fn encode(context: &TraceContext, span: &SpanData, ended: SystemTime) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(USUAL);
    write(&mut bytes, context, span, ended);
    bytes
}

fn write(to: &mut Vec<u8>, context: &TraceContext, span: &SpanData, ended: SystemTime) {
    let (trace_id, span_id) = context.ids();
    bytes(to, 1, &trace_id.to_be_bytes());
    bytes(to, 2, &span_id.to_be_bytes());
    string(to, 3, context.tracestate().unwrap_or_default());
    if let Some(parent) = span.parent {
        bytes(to, 4, &parent.to_be_bytes());
    }
    string(to, 5, &span.name);
    number(to, 6, kind(&span.kind));
    time(to, 7, span.started);
    time(to, 8, ended);
    attributes(to, 9, &span.attributes);
    number(to, 10, span.dropped_attributes.into());
    let mut nested = Vec::new();
    for event in &span.events {
        nested.clear();
        write_event(&mut nested, event);
        bytes(to, 11, &nested);
    }
    number(to, 12, span.dropped_events.into());
    for link in &span.links {
        nested.clear();
        write_link(&mut nested, link);
        bytes(to, 13, &nested);
    }
    number(to, 14, span.dropped_links.into());
    if span.status != Status::Unset {
        nested.clear();
        write_status(&mut nested, &span.status);
        bytes(to, 15, &nested);
    }
    fixed32(to, 16, flags(context, span.is_parent_remote));
}

fn write_event(to: &mut Vec<u8>, event: &Event) {
    time(to, 1, event.timestamp);
    string(to, 2, &event.name);
    attributes(to, 3, &event.attributes);
}

fn write_link(to: &mut Vec<u8>, link: &TraceContext) {
    let (trace_id, span_id) = link.ids();
    bytes(to, 1, &trace_id.to_be_bytes());
    bytes(to, 2, &span_id.to_be_bytes());
    string(to, 3, link.tracestate().unwrap_or_default());
    // Links usually lead to other processes, so each is written as remote.
    fixed32(to, 6, flags(link, true));
}

fn write_status(to: &mut Vec<u8>, status: &Status) {
    match status {
        Status::Unset => {}
        Status::Ok => number(to, 3, 1),
        Status::Error { description } => {
            string(to, 2, description);
            number(to, 3, 2);
        }
    }
}

fn kind(kind: &SpanKind) -> u64 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Producer => 4,
        SpanKind::Consumer => 5,
    }
}

fn flags(context: &TraceContext, is_remote: bool) -> u32 {
    let remote = if is_remote { IS_REMOTE } else { 0 };
    u32::from(context.is_sampled()) | IS_REMOTE_KNOWN | remote
}
