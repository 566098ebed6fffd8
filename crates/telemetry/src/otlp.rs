//! Writes spans directly as OTLP's protobuf, because the generated messages copy every name and attribute, which
//! doubles the cost of a span. The format is that of `opentelemetry/proto/trace/v1/trace.proto`; a test reads it back
//! with the generated messages.

mod span;
mod value;
mod wire;

use bytes::Bytes;
use opentelemetry::InstrumentationScope;
use opentelemetry_sdk::Resource;

use wire::{bytes, nested_len, open, string};

pub(crate) use span::encode;

pub(crate) fn append(batch: &mut Vec<u8>, span: &[u8]) {
    bytes(batch, 2, span);
}

#[derive(Debug)]
pub(crate) struct Envelope {
    /// `ResourceSpans.resource`.
    resource: Vec<u8>,
    /// `ScopeSpans.scope`.
    scope: Vec<u8>,
}

impl Envelope {
    pub(crate) fn new(resource: &Resource, scope: &InstrumentationScope) -> Self {
        let mut attributes = Vec::new();
        for (key, given) in resource {
            value::attribute(&mut attributes, 1, key.as_str(), given);
        }
        let mut told = Vec::new();
        string(&mut told, 1, scope.name());
        string(&mut told, 2, scope.version().unwrap_or_default());
        Self {
            resource: field(&attributes),
            scope: field(&told),
        }
    }

    pub(crate) fn request(&self, batch: &[u8]) -> Bytes {
        let spans = self.scope.len() + batch.len();
        let all = self.resource.len() + nested_len(2, spans);
        let mut request = Vec::with_capacity(nested_len(1, all));
        open(&mut request, 1, all);
        request.extend_from_slice(&self.resource);
        open(&mut request, 2, spans);
        request.extend_from_slice(&self.scope);
        request.extend_from_slice(batch);
        request.into()
    }
}

fn field(message: &[u8]) -> Vec<u8> {
    let mut field = Vec::with_capacity(nested_len(1, message.len()));
    bytes(&mut field, 1, message);
    field
}

#[cfg(test)]
mod tests;
