use std::fmt::Write as _;
use std::sync::Arc;

/// Maximum bytes of `tracestate`: the least that W3C asks to pass on.
const LONGEST_STATE: usize = 512;
const MOST_MEMBERS: usize = 32;
const SAMPLED: u8 = 1;

/// A span's identity, the parent of other spans. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    is_sampled: bool,
    state: Option<Arc<str>>,
    is_foreign: bool,
}

impl TraceContext {
    /// Parses a client's trace context, from headers or `_meta`. `None` if `traceparent` is invalid. An
    /// invalid `tracestate` is dropped.
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        // A later version may append more after a dash.
        let parent = traceparent.trim_matches([' ', '\t']).as_bytes();
        let (known, more) = parent.split_at_checked(55)?;
        if [known[2], known[35], known[52]] != [b'-'; 3] {
            return None;
        }
        let version = hex(&known[..2])?;
        let trace_id = hex(&known[3..35])?;
        let span_id = hex(&known[36..52])?;
        let flags = hex(&known[53..])?;
        let has_good_end = match (version, more) {
            (0xff, _) => false,
            (_, []) => true,
            (version, [first, ..]) => version != 0 && *first == b'-',
        };
        if !has_good_end || trace_id == 0 || span_id == 0 {
            return None;
        }
        Some(Self {
            trace_id,
            span_id: u64::try_from(span_id).ok()?,
            // Unknown flags are not passed on.
            is_sampled: u8::try_from(flags).ok()? & SAMPLED != 0,
            state: tracestate.map(str::trim).and_then(checked_state),
            is_foreign: true,
        })
    }

    /// Like [`parse`](Self::parse), for another Shoal process's context.
    #[must_use]
    pub fn parse_trusted(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        Self::parse(traceparent, tracestate).map(|context| Self {
            is_foreign: false,
            ..context
        })
    }

    /// Returns `traceparent`.
    #[must_use]
    pub fn to_traceparent(&self) -> String {
        let mut text = String::with_capacity(55);
        let Self {
            trace_id,
            span_id,
            is_sampled,
            ..
        } = self;
        let flags = u8::from(*is_sampled) * SAMPLED;
        let _ = write!(text, "00-{trace_id:032x}-{span_id:016x}-{flags:02x}");
        text
    }

    /// Returns `tracestate`, if any.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Whether the trace is sampled.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// Returns the trace id, 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// Returns the span id, 16 hexadecimal digits.
    #[must_use]
    pub fn span_id(&self) -> String {
        format!("{:016x}", self.span_id)
    }

    /// Identifies a span of this process.
    #[must_use]
    pub fn new(trace_id: u128, span_id: u64, is_sampled: bool) -> Self {
        Self {
            trace_id,
            span_id,
            is_sampled,
            state: None,
            is_foreign: false,
        }
    }

    /// Identifies a child span of this process.
    #[must_use]
    pub fn child(&self, span_id: u64, is_sampled: bool) -> Self {
        Self {
            state: self.state.clone(),
            ..Self::new(self.trace_id, span_id, is_sampled)
        }
    }

    /// Returns the same span with Shoal's own sampling decision.
    #[must_use]
    pub fn decided(&self, is_sampled: bool) -> Self {
        self.child(self.span_id, is_sampled)
    }

    /// Returns trace id and span id.
    #[must_use]
    pub fn ids(&self) -> (u128, u64) {
        (self.trace_id, self.span_id)
    }

    /// Whether a client sent the context, so that Shoal may decide on sampling.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Sets a `tracestate` that is known to be valid; it is not checked.
    #[must_use]
    pub fn with_tracestate(self, state: &str) -> Self {
        Self {
            state: (!state.is_empty()).then(|| state.into()),
            ..self
        }
    }
}

fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

fn checked_state(text: &str) -> Option<Arc<str>> {
    if text.is_empty() || text.len() > LONGEST_STATE || !text.is_ascii() {
        return None;
    }
    let mut members = 0;
    for member in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let (key, value) = member.split_once('=')?;
        let is_value = !value.is_empty() && value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        let is_key = !key.is_empty()
            && key.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte)
            });
        members += 1;
        if !is_key || !is_value || value.contains('=') || members > MOST_MEMBERS {
            return None;
        }
    }
    (members > 0).then(|| Arc::from(text))
}

#[cfg(test)]
mod tests;
