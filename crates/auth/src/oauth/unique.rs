use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// An object that must not repeat a member, because readers disagree on which one counts.
pub(crate) struct Unique(pub(crate) Map<String, Value>);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueMembers)
    }
}

struct UniqueMembers;

impl<'de> Visitor<'de> for UniqueMembers {
    type Value = Unique;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Unique, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = access.next_entry::<String, Value>()? {
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("a member is there twice"));
            }
        }
        Ok(Unique(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_may_be_there_once() {
        let read = |text: &str| serde_json::from_str::<Unique>(text).ok().map(|read| read.0);
        assert_eq!(read(r#"{"a":1,"b":{"a":2}}"#).unwrap().len(), 2);
        assert!(read(r#"{"a":1,"a":1}"#).is_none());
        assert!(read(r#"{"a":1,"\u0061":2}"#).is_none());
        assert!(read("[]").is_none());
    }
}
