//! Converts the document's schemas to self-contained JSON Schema 2020-12.
//!
//! | file | content |
//! |---|---|
//! | `exact` | arguments, keyword by keyword |
//! | `loose` | answers, loosely, because answers break the document |
//! | `keywords`, `pattern` | single keywords; invalid values are dropped |
//! | `whole` | rules across keywords of one schema |
//! | `definitions` | targets of references |
//! | `detail` | levels of detail for large schemas |
//! | `names` | legal names of properties |

mod definitions;
mod detail;
mod exact;
mod keywords;
mod loose;
mod names;
mod pattern;
mod whole;

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value, json};
use shoal_protocol::is_opaque_name;

use super::document::Document;
use super::text;

pub(super) use self::detail::{Detail, INPUT, OUTPUT};
pub(super) use self::names::{WIRE_NAME, aliases, without_wire_names};
pub(super) use self::pattern::Patterns;

const MOST_SCHEMAS: usize = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaDirection {
    /// Without read-only properties.
    Input,
    /// Without write-only properties.
    Output,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

pub(super) struct Schemas<'a> {
    document: &'a Document,
    direction: SchemaDirection,
    detail: &'static Detail,
    /// By JSON Pointer to the schema.
    names: HashMap<String, String>,
    open: VecDeque<OpenSchema<'a>>,
    definitions: Map<String, Value>,
    patterns: &'a Patterns,
    left: usize,
    schemas: usize,
    is_renamed: bool,
    is_cut: bool,
}

struct OpenSchema<'a> {
    place: String,
    name: String,
    schema: &'a Value,
    depth: usize,
}

impl<'a> Schemas<'a> {
    pub(super) fn new(
        document: &'a Document,
        direction: SchemaDirection,
        detail: &'static Detail,
        patterns: &'a Patterns,
        limit: usize,
    ) -> Self {
        Self {
            document,
            direction,
            detail,
            names: HashMap::new(),
            open: VecDeque::new(),
            definitions: Map::new(),
            patterns,
            left: limit,
            schemas: MOST_SCHEMAS,
            is_renamed: false,
            is_cut: false,
        }
    }

    /// The targets of references become definitions.
    pub(super) fn convert(&mut self, schema: &Value) -> Result<Value, TooLarge> {
        self.converted(schema, 0)
    }

    pub(super) fn described(
        &mut self,
        schema: Value,
        description: Option<&str>,
    ) -> Result<Value, TooLarge> {
        let Value::Object(mut schema) = schema else {
            return Ok(schema);
        };
        let description = description.map(|description| json!(description));
        self.describe(description.as_ref(), &mut schema)?;
        Ok(Value::Object(schema))
    }

    /// Puts the service's name before the description if the name has letters or digits that are
    /// not ASCII, which a legal name cannot contain.
    pub(super) fn named(&mut self, mut schema: Value, name: &str) -> Result<Value, TooLarge> {
        if is_opaque_name(name)
            && let Value::Object(members) = &mut schema
        {
            self.spend(2 * name.len() + 20)?;
            let about = members.get("description").and_then(Value::as_str);
            let about = about.map_or_else(|| name.to_owned(), |about| format!("{name}: {about}"));
            members.insert("description".into(), about.into());
        }
        Ok(schema)
    }

    pub(super) fn list(&mut self, name: &str) -> Result<(), TooLarge> {
        self.spend(2 * name.len() + 8)
    }

    pub(super) fn is_renamed(&self) -> bool {
        self.is_renamed
    }

    fn converted(&mut self, schema: &Value, depth: usize) -> Result<Value, TooLarge> {
        self.spend(2)?;
        self.schemas = self.schemas.checked_sub(1).ok_or(TooLarge)?;
        let Value::Object(members) = schema else {
            return Ok(match schema {
                Value::Bool(false) if self.direction == SchemaDirection::Input => {
                    json!({ "not": {} })
                }
                _ => json!({}),
            });
        };
        if depth > self.detail.depth {
            return self.stub(schema);
        }
        let converted = match self.direction {
            SchemaDirection::Input => self.exact(members, depth)?,
            SchemaDirection::Output => self.loose(members, depth)?,
        };
        Ok(Value::Object(converted))
    }

    fn stub(&mut self, schema: &Value) -> Result<Value, TooLarge> {
        self.is_cut = true;
        self.spend(40)?;
        let mut stub = self.only_type(schema);
        let schema = self.document.resolve(schema).unwrap_or(schema);
        self.describe(schema.get("description"), &mut stub)?;
        Ok(Value::Object(stub))
    }

    fn only_type(&self, schema: &Value) -> Map<String, Value> {
        let mut only = Map::new();
        let schema = self.document.resolve(schema).unwrap_or(schema);
        let mut kinds = keywords::types(schema.get("type"));
        if kinds.is_empty() {
            return only;
        }
        if whole::flag(schema, "nullable") || self.direction == SchemaDirection::Output {
            whole::allow_null(&mut kinds);
        }
        if kinds.contains(&"array") {
            only.insert("items".into(), json!({}));
        }
        only.insert("type".into(), whole::written(&kinds));
        only
    }

    fn describe(
        &mut self,
        description: Option<&Value>,
        converted: &mut Map<String, Value>,
    ) -> Result<(), TooLarge> {
        let Some(Value::String(description)) = description else {
            return Ok(());
        };
        let short = text::short(description, self.detail.text);
        if !short.is_empty() {
            self.spend(short.len() + 16)?;
            converted.insert("description".into(), short.into());
        }
        Ok(())
    }

    fn travels(&self, property: &Value) -> bool {
        let other = match self.direction {
            SchemaDirection::Input => "readOnly",
            SchemaDirection::Output => "writeOnly",
        };
        let says = |schema: &Value| schema.get(other) == Some(&Value::Bool(true));
        !says(property) && !self.document.resolve(property).is_ok_and(says)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.left = self.left.checked_sub(bytes).ok_or(TooLarge)?;
        Ok(())
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(list) => list.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => {
            members
                .iter()
                .map(|(k, v)| k.len() + 4 + size(v))
                .sum::<usize>()
                + 2
        }
        other => other.to_string().len(),
    }
}

#[cfg(test)]
mod tests;
