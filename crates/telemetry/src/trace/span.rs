//! A span while it runs.

use std::borrow::Cow;
use std::time::SystemTime;

use opentelemetry::KeyValue;
use opentelemetry::trace::{Event, SpanKind, Status};
use shoal_protocol::TraceContext;

use super::attributes::{ERROR_TYPE, Key, Recorded, cut, cut_name};

/// Attributes of one span at most, and events; beyond it they are counted only.
pub(super) const MOST: usize = 128;

/// A step of a call. It ends when it is dropped, so one that is moved into a task ends with the task, also when that
/// is cancelled.
///
/// In a trace that is not kept, every method returns at once.
#[derive(Debug, Default)]
#[must_use = "a span ends when it is dropped: bind it to a name, and not to `_`"]
pub struct Span {
    context: Option<TraceContext>,
    running: Option<Box<SpanData>>,
}

/// What a span in a kept trace gathers.
#[derive(Debug)]
pub(crate) struct SpanData {
    pub(crate) parent: Option<u64>,
    pub(crate) is_parent_remote: bool,
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: SpanKind,
    pub(crate) started: SystemTime,
    pub(crate) attributes: Vec<KeyValue>,
    pub(crate) dropped_attributes: u32,
    pub(crate) events: Vec<Event>,
    pub(crate) dropped_events: u32,
    pub(crate) links: Vec<TraceContext>,
    pub(crate) dropped_links: u32,
    pub(crate) status: Status,
}

impl Span {
    /// A span of no trace, for places that need one. The same as `Span::default()`.
    pub const fn none() -> Self {
        Self {
            context: None,
            running: None,
        }
    }

    pub(super) fn unrecorded(context: Option<TraceContext>) -> Self {
        Self {
            context,
            running: None,
        }
    }

    pub(super) fn recorded(context: TraceContext, running: SpanData) -> Self {
        Self {
            context: Some(context),
            running: Some(Box::new(running)),
        }
    }

    /// What children and other processes need to know. `None` when traces are off and no parent was given.
    #[must_use]
    pub fn context(&self) -> Option<&TraceContext> {
        self.context.as_ref()
    }

    /// Whether what is set here is kept. Ask before computing something costly.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.running.is_some()
    }

    /// Sets an attribute, replacing its former value.
    pub fn set<T: Recorded + ?Sized>(&mut self, key: Key<T>, value: T::Given<'_>) {
        if let Some(running) = &mut self.running {
            running.set(key.name(), T::to_value(value));
        }
    }

    /// Sets an attribute, if there is a value.
    pub fn set_some<T: Recorded + ?Sized>(&mut self, key: Key<T>, value: Option<T::Given<'_>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Gives the span a better name, once the tool is known. `name` is called only when the span is kept.
    pub fn rename<N: Into<Cow<'static, str>>>(&mut self, name: impl FnOnce() -> N) {
        if let Some(running) = &mut self.running {
            running.name = cut_name(name().into());
        }
    }

    /// The step failed: sets `error.type` and the status. `kind` is one of few: a JSON-RPC code, `tool_error`, or a
    /// short name.
    pub fn record_error(&mut self, kind: &str) {
        self.record_error_with(kind, "");
    }

    /// Like [`record_error`](Self::record_error), with a message for people; nothing secret.
    pub fn record_error_with(&mut self, kind: &str, message: &str) {
        if let Some(running) = &mut self.running {
            running.set(ERROR_TYPE.name(), str::to_value(kind));
            running.status = Status::error(cut(message).to_owned());
        }
    }

    /// Something happened at this moment. `attributes` is called only when the span is kept.
    pub fn add_event(&mut self, name: &'static str, attributes: impl FnOnce(&mut Attributes)) {
        let Some(running) = &mut self.running else {
            return;
        };
        if running.events.len() >= MOST {
            running.dropped_events += 1;
            return;
        }
        let mut gathered = Attributes::default();
        attributes(&mut gathered);
        running
            .events
            .push(Event::new(name, SystemTime::now(), gathered.gathered, 0));
    }

    /// Points to a span that is no parent: a former attempt, or what another trace did for this one.
    pub fn add_link(&mut self, to: &TraceContext) {
        if let Some(running) = &mut self.running {
            running.link(to);
        }
    }

    /// Ends the span now, which dropping it does as well.
    pub fn end(self) {
        drop(self);
    }
}

impl SpanData {
    pub(super) fn set(&mut self, key: &'static str, value: opentelemetry::Value) {
        if let Some(there) = (self.attributes.iter_mut()).find(|it| it.key.as_str() == key) {
            there.value = value;
        } else if self.attributes.len() < MOST {
            self.attributes.push(KeyValue::new(key, value));
        } else {
            self.dropped_attributes += 1;
        }
    }

    pub(super) fn link(&mut self, to: &TraceContext) {
        if self.links.len() < MOST {
            self.links.push(to.clone());
        } else {
            self.dropped_links += 1;
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let (Some(context), Some(running)) = (&self.context, self.running.take())
            && let Some(tracer) = crate::state::tracer()
        {
            tracer.end(context, &running);
        }
    }
}

/// Gathers attributes for a span that starts, or for an event.
#[derive(Debug, Default)]
pub struct Attributes {
    pub(super) gathered: Vec<KeyValue>,
}

/// Attributes of most spans.
const USUAL: usize = 8;

impl Attributes {
    pub(super) fn with_room() -> Self {
        Self {
            gathered: Vec::with_capacity(USUAL),
        }
    }

    /// Adds one; a key is given once.
    pub fn set<T: Recorded + ?Sized>(&mut self, key: Key<T>, value: T::Given<'_>) -> &mut Self {
        if self.gathered.len() < MOST {
            (self.gathered).push(KeyValue::new(key.name(), T::to_value(value)));
        }
        self
    }

    /// Adds one, if there is a value.
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
}
