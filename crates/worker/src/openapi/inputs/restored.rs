use std::collections::HashSet;

use serde_json::{Map, Value};
use shoal_protocol::is_legal_name;

use super::given::put;
use crate::openapi::schema::WIRE_NAME;

const MOST_STEPS: usize = 5_000_000;

#[derive(Clone, Debug)]
pub(in crate::openapi) struct WireNames(pub(super) Value);

impl WireNames {
    /// Renames arguments to the service's names at every depth.
    ///
    /// # Errors
    /// A member is given twice with different values, or the arguments need too many steps.
    pub(in crate::openapi) fn restored(
        &self,
        arguments: Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let mut walk = RestoringWalk {
            root: &self.0,
            left: MOST_STEPS,
            conflict: None,
        };
        let mut schemas = Vec::new();
        walk.gather(&self.0, &mut schemas, &mut HashSet::new());
        let restored = walk.members(arguments, &schemas);
        match (walk.conflict, walk.left) {
            (Some(why), _) => Err(why),
            (_, 0) => {
                Err("the arguments are too many to be named as the service names them".to_owned())
            }
            _ => Ok(restored),
        }
    }
}

struct RestoringWalk<'a> {
    root: &'a Value,
    left: usize,
    conflict: Option<String>,
}

impl<'a> RestoringWalk<'a> {
    fn gather(
        &mut self,
        schema: &'a Value,
        found: &mut Vec<&'a Map<String, Value>>,
        seen: &mut HashSet<*const Value>,
    ) {
        let Value::Object(members) = schema else {
            return;
        };
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || !seen.insert(std::ptr::from_ref(schema)) {
            return;
        }
        found.push(members);
        let reference = members.get("$ref").and_then(Value::as_str);
        let target =
            reference.and_then(|reference| self.root.pointer(reference.strip_prefix('#')?));
        if let Some(target) = target {
            self.gather(target, found, seen);
        }
        for of in ["allOf", "anyOf", "oneOf"] {
            for other in members
                .get(of)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                self.gather(other, found, seen);
            }
        }
        for of in ["if", "then", "else"] {
            if let Some(other) = members.get(of) {
                self.gather(other, found, seen);
            }
        }
    }

    fn members(
        &mut self,
        members: Map<String, Value>,
        schemas: &[&'a Map<String, Value>],
    ) -> Map<String, Value> {
        let mut restored = Map::new();
        for (name, value) in members {
            let mut wire = None;
            let (mut found, mut seen) = (Vec::new(), HashSet::new());
            for schema in schemas {
                self.left = self.left.saturating_sub(1);
                let property = self.property(schema, &name);
                let own = property.and_then(|property| property.get(WIRE_NAME)?.as_str());
                wire = wire.or(own);
                let property = property.or_else(|| schema.get("additionalProperties"));
                if let Some(property) = property {
                    self.gather(property, &mut found, &mut seen);
                }
            }
            let name = wire.map_or(name, str::to_owned);
            let value = self.value(value, &found);
            if let Err(why) = put(&mut restored, name, value, "member") {
                self.conflict.get_or_insert(why);
            }
        }
        restored
    }

    /// Listed names are always legal, so an illegal name is the service's.
    fn property(&mut self, schema: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
        let properties = schema.get("properties")?.as_object()?;
        if is_legal_name(name) {
            return properties.get(name);
        }
        self.left = self.left.saturating_sub(properties.len());
        let is_it = |property: &&Value| property.get(WIRE_NAME).is_some_and(|own| own == name);
        properties.values().find(is_it)
    }

    fn value(&mut self, value: Value, schemas: &[&'a Map<String, Value>]) -> Value {
        match value {
            _ if schemas.is_empty() || self.left == 0 => value,
            Value::Object(members) => Value::Object(self.members(members, schemas)),
            Value::Array(items) => {
                let (mut found, mut seen) = (Vec::new(), HashSet::new());
                for schema in schemas {
                    if let Some(item) = schema.get("items") {
                        self.gather(item, &mut found, &mut seen);
                    }
                }
                let items = items.into_iter();
                Value::Array(items.map(|item| self.value(item, &found)).collect())
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests;
