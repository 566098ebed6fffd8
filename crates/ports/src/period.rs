//! A length of time as people write it: `500ms`, `30s`, `5m`, `1h 30m`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(Duration);

impl Period {
    /// Zero length.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// Makes a period of seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Makes a period of milliseconds.
    pub const fn millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// Returns the duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl From<Duration> for Period {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl fmt::Debug for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(PeriodVisitor)
    }
}

struct PeriodVisitor;

impl Visitor<'_> for PeriodVisitor {
    type Value = Period;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a time with its unit, such as \"500ms\", \"30s\", \"5m\" or \"1h 30m\", in quotes",
        )
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Period, E> {
        humantime::parse_duration(text)
            .map(Period)
            .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

impl JsonSchema for Period {
    fn schema_name() -> Cow<'static, str> {
        "Period".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^\d+\s*[a-zµ]+(\s*\d+\s*[a-zµ]+)*$|^0$",
            "examples": ["500ms", "30s", "5m", "1h 30m"],
        })
    }
}
