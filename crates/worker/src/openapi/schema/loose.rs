//! Converts schemas of answers so loosely that real answers fit.
//!
//! Services often break their documents, and clients then drop the answer. So every value may be `null` or
//! missing, objects may have more members, and choices stay open.

use serde_json::{Map, Value, json};

use super::keywords;
use super::whole::{allow_null, written};
use super::{Schemas, TooLarge, size};

const EXAMPLES: usize = 256;

impl Schemas<'_> {
    pub(super) fn loose(
        &mut self,
        members: &Map<String, Value>,
        depth: usize,
    ) -> Result<Map<String, Value>, TooLarge> {
        let mut converted = Map::new();
        let reference = members.get("$ref").and_then(Value::as_str);
        if let Some(reference) = reference {
            if let Some(reference) = self.definition(reference, depth)? {
                converted.insert("$ref".into(), reference.into());
            }
            self.describe(members.get("description"), &mut converted)?;
            return Ok(converted);
        }
        let mut kinds = keywords::types(members.get("type"));
        if kinds.is_empty() && members.contains_key("properties") {
            kinds.push("object");
        }
        if !kinds.is_empty() {
            allow_null(&mut kinds);
            self.spend(32)?;
            converted.insert("type".into(), written(&kinds));
        }
        self.describe(members.get("description"), &mut converted)?;
        self.choices(members, &mut converted)?;
        if let Some(Value::Object(properties)) = members.get("properties") {
            self.members(properties, depth, &mut converted)?;
        }
        for keyword in ["items", "additionalProperties"] {
            if let Some(schema @ Value::Object(_)) = members.get(keyword) {
                self.spend(keyword.len() + 4)?;
                let schema = self.converted(schema, depth + 1)?;
                converted.insert(keyword.into(), schema);
            }
        }
        if kinds.contains(&"array") && !converted.contains_key("items") {
            converted.insert("items".into(), json!({}));
        }
        let of_all = self.listed(members.get("allOf"), depth)?;
        if !of_all.is_empty() {
            converted.insert("allOf".into(), Value::Array(of_all));
        }
        // `oneOf` becomes `anyOf`, because several loose alternatives may fit.
        let mut of_any = self.listed(members.get("anyOf"), depth)?;
        of_any.extend(self.listed(members.get("oneOf"), depth)?);
        if !of_any.is_empty() {
            converted.insert("anyOf".into(), Value::Array(of_any));
        }
        Ok(converted)
    }

    fn listed(&mut self, schemas: Option<&Value>, depth: usize) -> Result<Vec<Value>, TooLarge> {
        let schemas = schemas.and_then(Value::as_array).into_iter().flatten();
        let converted = schemas.map(|schema| {
            self.spend(10)?;
            self.converted(schema, depth + 1)
        });
        converted.collect()
    }

    fn members(
        &mut self,
        properties: &Map<String, Value>,
        depth: usize,
        converted: &mut Map<String, Value>,
    ) -> Result<(), TooLarge> {
        let mut listed = Map::new();
        for (name, schema) in properties {
            if self.travels(schema) {
                self.spend(name.len() + 4)?;
                listed.insert(name.clone(), self.converted(schema, depth + 1)?);
            }
        }
        converted.insert("properties".into(), Value::Object(listed));
        Ok(())
    }

    /// Other choices may exist, so the listed ones become examples.
    fn choices(
        &mut self,
        members: &Map<String, Value>,
        converted: &mut Map<String, Value>,
    ) -> Result<(), TooLarge> {
        let Some(choices) = members.get("enum") else {
            return Ok(());
        };
        let Some(choices) = keywords::value("enum", choices, self.detail.choices) else {
            return Ok(());
        };
        let size = size(&choices);
        if size <= EXAMPLES {
            self.spend(size + 12)?;
            converted.insert("examples".into(), choices);
        }
        Ok(())
    }
}
