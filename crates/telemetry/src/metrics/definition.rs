/// A metric.
#[derive(Debug)]
pub struct Definition {
    /// The OpenTelemetry name.
    pub name: &'static str,
    /// The unit in UCUM: `s`, `By`, or the counted thing in braces.
    pub unit: &'static str,
    /// The description, in one sentence.
    pub description: &'static str,
    /// The kind of metric.
    pub kind: Kind,
    /// The attributes.
    pub attributes: &'static [Attribute],
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only grows, until the process restarts.
    Counter,
    /// Goes up and down, and can be summed. Read at collection.
    UpDownCounter,
    /// Cannot be summed. Read at collection.
    Gauge,
    /// A distribution, with the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

impl Kind {
    /// Returns the name on the reference page.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::UpDownCounter => "up-down counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// An attribute of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The key.
    pub key: &'static str,
    /// The possible values.
    pub values: Values,
}

/// The possible values of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// One of a fixed set of values, or `_OTHER` if `open`.
    OneOf {
        /// The values.
        values: &'static [&'static str],
        /// The meaning of each value, or nothing if the values say it all.
        meanings: &'static [&'static str],
        /// Whether other values are recorded as `_OTHER`.
        open: bool,
    },
    /// Names that the operator configured, or `_OTHER`, with a description of the names.
    Configured(&'static str),
    /// Texts in the code, with a description of the texts.
    Code(&'static str),
}

/// The buckets of the MCP conventions, in seconds.
pub(crate) const MCP_SECONDS: &[f64] = &[
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// Buckets for steps of at most a network round trip, in seconds.
pub(crate) const SHORT_SECONDS: &[f64] = &[
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
];

/// Buckets for waits and for moves of sessions, in seconds.
pub(crate) const WAIT_SECONDS: &[f64] = &[
    0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// The buckets of the HTTP conventions, in seconds.
pub(crate) const HTTP_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];

impl Definition {
    pub(crate) const fn new(
        name: &'static str,
        unit: &'static str,
        description: &'static str,
        kind: Kind,
        attributes: &'static [Attribute],
    ) -> Self {
        Self {
            name,
            unit,
            description,
            kind,
            attributes,
        }
    }
}

impl Attribute {
    pub(crate) const fn one_of(key: &'static str, values: &'static [&'static str]) -> Self {
        Self::explained(key, values, &[])
    }

    pub(crate) const fn explained(
        key: &'static str,
        values: &'static [&'static str],
        meanings: &'static [&'static str],
    ) -> Self {
        Self {
            key,
            values: Values::OneOf {
                values,
                meanings,
                open: false,
            },
        }
    }

    pub(crate) const fn one_or_other(key: &'static str, values: &'static [&'static str]) -> Self {
        Self {
            key,
            values: Values::OneOf {
                values,
                meanings: &[],
                open: true,
            },
        }
    }

    pub(crate) const fn configured(key: &'static str, by: &'static str) -> Self {
        Self {
            key,
            values: Values::Configured(by),
        }
    }

    pub(crate) const fn code(key: &'static str, which: &'static str) -> Self {
        Self {
            key,
            values: Values::Code(which),
        }
    }
}
