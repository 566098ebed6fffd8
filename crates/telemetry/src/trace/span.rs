use std::borrow::Cow;
use std::time::SystemTime;

use opentelemetry::KeyValue;
use opentelemetry::trace::{Event, SpanKind, Status};
use shoal_protocol::TraceContext;

use super::attributes::{ERROR_TYPE, Key, Recorded, cut, cut_name};

/// Maximum attributes, events and links of a span. Further ones are dropped.
pub(super) const MOST: usize = 128;

/// A step of a call. It ends when it is dropped, for example with a cancelled task. In an unsampled trace, every method
/// returns at once.
#[derive(Debug, Default)]
#[must_use = "a span ends when it is dropped: bind it to a name, and not to `_`"]
pub struct Span {
    context: Option<TraceContext>,
    running: Option<Box<SpanData>>,
}

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
    /// Creates a span outside of all traces.
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

    /// Returns the context for children and other processes. `None` when traces are off and there is no parent.
    #[must_use]
    pub fn context(&self) -> Option<&TraceContext> {
        self.context.as_ref()
    }

    /// Whether the span is recorded. Ask before computing costly values.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.running.is_some()
    }

    /// Sets or replaces an attribute.
    pub fn set<T: Recorded + ?Sized>(&mut self, key: Key<T>, value: T::Given<'_>) {
        if let Some(running) = &mut self.running {
            running.set(key.name(), T::to_value(value));
        }
    }

    /// Sets an attribute if it has a value.
    pub fn set_some<T: Recorded + ?Sized>(&mut self, key: Key<T>, value: Option<T::Given<'_>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Renames the span. `name` runs only when the span is recorded.
    pub fn rename<N: Into<Cow<'static, str>>>(&mut self, name: impl FnOnce() -> N) {
        if let Some(running) = &mut self.running {
            running.name = cut_name(name().into());
        }
    }

    /// Marks the step as failed. `kind` must be one of a small set: a JSON-RPC code, `tool_error`, or a short name.
    pub fn record_error(&mut self, kind: &str) {
        self.record_error_with(kind, "");
    }

    /// Like [`record_error`](Self::record_error), with a message that must not be secret.
    pub fn record_error_with(&mut self, kind: &str, message: &str) {
        if let Some(running) = &mut self.running {
            running.set(ERROR_TYPE.name(), str::to_value(kind));
            running.status = Status::error(cut(message).to_owned());
        }
    }

    /// Adds an event. `attributes` runs only when the span is recorded.
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

    /// Links to a span that is not the parent, such as a former attempt.
    pub fn add_link(&mut self, to: &TraceContext) {
        if let Some(running) = &mut self.running {
            running.link(to);
        }
    }

    /// Ends the span now.
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

/// Collects attributes for a new span or an event.
#[derive(Debug, Default)]
pub struct Attributes {
    pub(super) gathered: Vec<KeyValue>,
}

const USUAL: usize = 8;

impl Attributes {
    pub(super) fn with_room() -> Self {
        Self {
            gathered: Vec::with_capacity(USUAL),
        }
    }

    /// Adds an attribute. Use each key once.
    pub fn set<T: Recorded + ?Sized>(&mut self, key: Key<T>, value: T::Given<'_>) -> &mut Self {
        if self.gathered.len() < MOST {
            (self.gathered).push(KeyValue::new(key.name(), T::to_value(value)));
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
}
