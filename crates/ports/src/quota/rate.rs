use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A number per unit of time, written as `600/min`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    count: u32,
    unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
}

impl Unit {
    const ALL: [(Self, &'static str, u64); 4] = [
        (Self::Second, "s", 1),
        (Self::Minute, "min", 60),
        (Self::Hour, "h", 3_600),
        (Self::Day, "day", 86_400),
    ];

    fn row(self) -> (&'static str, u64) {
        let (_, name, seconds) = Self::ALL[self as usize];
        (name, seconds)
    }
}

/// Maximum per second. Intervals are whole nanoseconds, which cannot tell similar faster rates
/// apart.
const FASTEST: u64 = 100_000;

impl Rate {
    /// Returns the number.
    pub fn count(self) -> u32 {
        self.count
    }

    pub(super) fn interval(self) -> u64 {
        self.unit.row().1 * 1_000_000_000 / u64::from(self.count)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no rate: write a number and a unit, such as \"10/s\", \"600/min\", \"1000/h\" or \"5000/day\""
            )
        };
        let (count, unit) = text.split_once('/').ok_or_else(wrong)?;
        let count: u32 = count.trim().parse().map_err(|_| wrong())?;
        let unit = unit.trim();
        let known = Unit::ALL.iter().find(|(_, name, _)| *name == unit);
        let (unit, _, seconds) = *known.ok_or_else(wrong)?;
        if count == 0 {
            return Err(format!("{text:?} lets nothing through: write at least 1"));
        }
        if u64::from(count) > FASTEST * seconds {
            return Err(format!("{text:?} is more than {FASTEST}/s"));
        }
        Ok(Self { count, unit })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.unit.row().0)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Rate {
    fn schema_name() -> Cow<'static, str> {
        "Rate".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^\s*\d+\s*/\s*(s|min|h|day)\s*$",
            "examples": ["10/s", "600/min", "1000/h", "5000/day"],
        })
    }
}
