use std::time::SystemTime;

use opentelemetry::Value;
use opentelemetry::logs::{AnyValue, LogRecord as _, Severity};
use opentelemetry::trace::TraceFlags;
use opentelemetry_sdk::logs::SdkLogRecord;
use shoal_protocol::{RawJson, TraceContext};

use super::arguments::AuditedArguments;
use super::config::Kind;
use super::keys::{SPAN_ID, TOOL_ARGUMENTS, TRACE_ID};
use super::line::AuditLine;
use crate::trace::Key;
use crate::trace::attributes::Recorded;

/// An event under construction. Texts are truncated like those of spans.
pub struct Event<'a> {
    arguments: &'a AuditedArguments,
    line: Option<AuditLine>,
    /// Boxed, so that an event is cheap to move if there is no collector.
    record: Option<Box<SdkLogRecord>>,
}

impl<'a> Event<'a> {
    pub(super) fn new(
        kind: Kind,
        arguments: &'a AuditedArguments,
        in_file: bool,
        mut record: Option<Box<SdkLogRecord>>,
    ) -> Self {
        if let Some(record) = &mut record {
            record.set_event_name(kind.event_name());
            record.set_timestamp(SystemTime::now());
            record.set_severity_number(Severity::Info);
        }
        Self {
            arguments,
            line: in_file.then(|| AuditLine::new(kind)),
            record,
        }
    }

    /// Adds an attribute. Use each key once.
    pub fn set<T: Recorded + ?Sized>(&mut self, key: Key<T>, value: T::Given<'_>) -> &mut Self {
        if let Some(line) = &mut self.line {
            line.member(key, value);
        }
        if let Some(record) = &mut self.record {
            record.add_attribute(key.name(), any_value(T::to_value(value)));
        }
        self
    }

    /// Adds an attribute if it has a value.
    pub fn set_some<T: Recorded + ?Sized>(
        &mut self,
        key: Key<T>,
        value: Option<T::Given<'_>>,
    ) -> &mut Self {
        match value {
            Some(value) => self.set(key, value),
            None => self,
        }
    }

    /// Adds the event's trace and span.
    pub fn trace(&mut self, trace: Option<&TraceContext>) -> &mut Self {
        let Some(trace) = trace else {
            return self;
        };
        if let Some(line) = &mut self.line {
            line.text(TRACE_ID, &trace.trace_id());
            line.text(SPAN_ID, &trace.span_id());
        }
        if let Some(record) = &mut self.record {
            let (trace_id, span_id) = trace.ids();
            let flags = TraceFlags::default().with_sampled(trace.is_sampled());
            record.set_trace_context(trace_id.into(), span_id.into(), Some(flags));
        }
        self
    }

    /// Adds a tool call's arguments, if they are recorded.
    pub fn arguments(&mut self, tool: &str, params: &RawJson) -> &mut Self {
        let Some(text) = self.arguments.of(tool, params) else {
            return self;
        };
        if let Some(line) = &mut self.line {
            line.text(TOOL_ARGUMENTS, &text);
        }
        if let Some(record) = &mut self.record {
            record.add_attribute(TOOL_ARGUMENTS.name(), text);
        }
        self
    }

    pub(super) fn finish(self) -> (Option<AuditLine>, Option<Box<SdkLogRecord>>) {
        (self.line, self.record)
    }
}

fn any_value(value: Value) -> AnyValue {
    match value {
        Value::Bool(value) => value.into(),
        Value::I64(value) => value.into(),
        Value::F64(value) => value.into(),
        other => String::from(other.as_str()).into(),
    }
}
