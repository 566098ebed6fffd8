//! Converts schemas of arguments. Keywords that clients understand stay, in their 2020-12 form.

use serde_json::{Map, Value, json};

use super::super::document::OpenApiVersion;
use super::keywords;
use super::names::{WIRE_NAME, aliases};
use super::whole;
use super::{Schemas, TooLarge, size};

const EXAMPLE: usize = 512;

const ONE: [&str; 12] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Keywords whose boolean values stay booleans.
const BOOLEAN: [&str; 4] = [
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const LIST: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
const NAMED: [&str; 2] = ["patternProperties", "dependentSchemas"];

impl Schemas<'_> {
    pub(super) fn exact(
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
            if self.document.version() == OpenApiVersion::V3_0 {
                // OpenAPI 3.0 ignores siblings of a reference, but authors often mean `description`
                // and `nullable`.
                self.describe(members.get("description"), &mut converted)?;
                return Ok(whole::finished(
                    converted,
                    members.get("nullable") == Some(&Value::Bool(true)),
                ));
            }
        }
        for (keyword, value) in members {
            self.keyword(keyword, value, depth, &mut converted)?;
        }
        self.describe(members.get("description"), &mut converted)?;
        self.examples(members, &mut converted)?;
        if let Some(Value::Object(properties)) = members.get("properties") {
            self.properties(properties, depth, &mut converted)?;
        }
        Ok(whole::finished(
            converted,
            members.get("nullable") == Some(&Value::Bool(true)),
        ))
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        depth: usize,
        converted: &mut Map<String, Value>,
    ) -> Result<(), TooLarge> {
        let value = match value {
            Value::Bool(flag) if BOOLEAN.contains(&keyword) => Value::Bool(*flag),
            Value::Object(_) | Value::Bool(_) if ONE.contains(&keyword) => {
                self.converted(value, depth + 1)?
            }
            Value::Array(list) if LIST.contains(&keyword) && !list.is_empty() => {
                let list = list.iter().map(|schema| self.converted(schema, depth + 1));
                Value::Array(list.collect::<Result<_, _>>()?)
            }
            Value::Object(named) if NAMED.contains(&keyword) => {
                self.schemas_by_name(keyword, named, depth)?
            }
            Value::String(written) if keyword == "pattern" => match self.pattern(written) {
                Some(pattern) => Value::String(pattern),
                None => return Ok(()),
            },
            other => match keywords::value(keyword, other, self.detail.choices) {
                Some(value) => value,
                None => return Ok(()),
            },
        };
        self.spend(keyword.len() + 4)?;
        if value.is_array() || !value.is_object() {
            self.spend(size(&value))?;
        }
        converted.insert(keyword.to_owned(), value);
        Ok(())
    }

    fn schemas_by_name(
        &mut self,
        keyword: &str,
        schemas: &Map<String, Value>,
        depth: usize,
    ) -> Result<Value, TooLarge> {
        let mut converted = Map::new();
        for (name, schema) in schemas {
            let name = match keyword {
                "patternProperties" => self.pattern(name),
                _ => Some(name.clone()),
            };
            if let Some(name) = name {
                self.spend(name.len() + 4)?;
                converted.insert(name, self.converted(schema, depth + 1)?);
            }
        }
        Ok(Value::Object(converted))
    }

    fn properties(
        &mut self,
        properties: &Map<String, Value>,
        depth: usize,
        converted: &mut Map<String, Value>,
    ) -> Result<(), TooLarge> {
        let (shown, hidden): (Vec<_>, Vec<_>) = properties
            .iter()
            .partition(|(_, schema)| self.travels(schema));
        let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
        let aliases = aliases(&names);
        let mut listed = Map::new();
        for (&(name, schema), alias) in shown.iter().zip(&aliases) {
            self.spend(alias.len() + 4)?;
            let mut property = self.converted(schema, depth + 1)?;
            if name != alias {
                self.is_renamed = true;
                property[WIRE_NAME] = name.as_str().into();
            }
            let property = self.named(property, name)?;
            listed.insert(alias.clone(), property);
        }
        converted.insert("properties".into(), Value::Object(listed));
        let alias = |name: &str| match names.iter().position(|other| *other == name) {
            Some(at) => aliases[at].clone(),
            None => name.to_owned(),
        };
        let hidden: Vec<&str> = hidden.into_iter().map(|(name, _)| name.as_str()).collect();
        let required = converted.remove("required");
        let required = required.iter().filter_map(Value::as_array).flatten();
        let required = required.filter_map(Value::as_str);
        let mut required: Vec<&str> = required.filter(|name| !hidden.contains(name)).collect();
        // In draft-03, a property's own schema says that it is required.
        for (name, schema) in &shown {
            if whole::flag(schema, "required") && !required.contains(&name.as_str()) {
                self.spend(name.len() + 3)?;
                required.push(name);
            }
        }
        if !required.is_empty() {
            let required: Vec<String> = required.into_iter().map(alias).collect();
            converted.insert("required".into(), json!(required));
        }
        if !hidden.is_empty() {
            self.forbid(&hidden, converted)?;
        }
        Ok(())
    }

    /// Forbids read-only properties, because the service might trust them from a caller.
    fn forbid(
        &mut self,
        hidden: &[&str],
        converted: &mut Map<String, Value>,
    ) -> Result<(), TooLarge> {
        let others = json!({ "not": { "enum": hidden } });
        self.spend(size(&others) + 16)?;
        let names = match converted.remove("propertyNames") {
            Some(names) => json!({ "allOf": [names, others] }),
            None => others,
        };
        converted.insert("propertyNames".into(), names);
        Ok(())
    }

    fn examples(
        &mut self,
        members: &Map<String, Value>,
        converted: &mut Map<String, Value>,
    ) -> Result<(), TooLarge> {
        let examples = match (members.get("examples"), members.get("example")) {
            (Some(Value::Array(examples)), _) => Value::Array(examples.clone()),
            (_, Some(example)) => json!([example]),
            _ => return Ok(()),
        };
        let size = size(&examples);
        if self.detail.examples && size <= EXAMPLE {
            self.spend(size + 12)?;
            converted.insert("examples".into(), examples);
        }
        Ok(())
    }

    fn pattern(&self, written: &str) -> Option<String> {
        self.patterns.mended(written)
    }
}
