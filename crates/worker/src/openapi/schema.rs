//! Schemas of the document as JSON Schema 2020-12, closed: a tool's schema brings all that it refers to.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::document::{Document, OpenApiVersion, pointer};

/// Bytes of an example that a schema keeps.
const EXAMPLE: usize = 512;

/// Keywords whose value is a schema.
const ONE: [&str; 11] = [
    "items",
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
/// Those whose value is a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Those whose value names schemas.
const NAMED: [&str; 4] = [
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];
/// Those that mean nothing to a client, or something else than in the document.
const DROPPED: [&str; 11] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$schema",
    "discriminator",
    "example",
    "examples",
    "externalDocs",
    "nullable",
    "xml",
];

/// Which way what a schema describes travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaDirection {
    /// To the service: without what it alone sets.
    Input,
    /// From the service: without what it never tells.
    Output,
}

/// More bytes than a tool's schema may have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Converts schemas that stand together in one tool's.
pub(super) struct Schemas<'a> {
    document: &'a Document,
    direction: SchemaDirection,
    /// The names of definitions, by where they are in the document.
    names: HashMap<String, String>,
    /// Those that are still to be converted.
    open: Vec<(String, &'a Value)>,
    definitions: Map<String, Value>,
    left: usize,
}

impl<'a> Schemas<'a> {
    /// None yet. They may have `limit` bytes together.
    pub(super) fn new(document: &'a Document, direction: SchemaDirection, limit: usize) -> Self {
        Self {
            document,
            direction,
            names: HashMap::new(),
            open: Vec::new(),
            definitions: Map::new(),
            left: limit,
        }
    }

    /// A schema of the document. What it refers to becomes a definition.
    pub(super) fn convert(&mut self, schema: &Value) -> Result<Value, TooLarge> {
        self.spend(2)?;
        let Value::Object(members) = schema else {
            return Ok(Value::Bool(schema.as_bool().unwrap_or(true)));
        };
        let mut converted = Map::new();
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            match self.definition(reference)? {
                Some(reference) => drop(converted.insert("$ref".into(), reference.into())),
                None => return Ok(Value::Bool(true)),
            }
            if self.document.version() == OpenApiVersion::V3_0 {
                // Whatever else stands beside a reference has no meaning there.
                if let Some(Value::String(description)) = members.get("description") {
                    self.spend(description.len() + 16)?;
                    converted.insert("description".into(), description.clone().into());
                }
                return Ok(Value::Object(converted));
            }
        }
        let mut hidden = Vec::new();
        for (keyword, value) in members {
            let keyword = keyword.as_str();
            if keyword == "$ref" || DROPPED.contains(&keyword) || keyword.starts_with("x-") {
                continue;
            }
            self.spend(keyword.len() + 4)?;
            let value = match value {
                Value::Object(_) | Value::Bool(_) if ONE.contains(&keyword) => {
                    self.convert(value)?
                }
                Value::Array(list) if LIST.contains(&keyword) || keyword == "items" => {
                    let list = list.iter().map(|schema| self.convert(schema));
                    Value::Array(list.collect::<Result<_, _>>()?)
                }
                Value::Object(named) if keyword == "properties" => {
                    let (shown, others): (Vec<_>, Vec<_>) =
                        named.iter().partition(|(_, schema)| self.travels(schema));
                    hidden = others.into_iter().map(|(name, _)| name.as_str()).collect();
                    self.named(shown.into_iter())?
                }
                Value::Object(named) if NAMED.contains(&keyword) => self.named(named.iter())?,
                other => {
                    self.spend(size(other))?;
                    other.clone()
                }
            };
            converted.insert(keyword.to_owned(), value);
        }
        if let Some(Value::Array(required)) = converted.get_mut("required") {
            required.retain(|name| name.as_str().is_some_and(|name| !hidden.contains(&name)));
        }
        if self.direction == SchemaDirection::Input && !hidden.is_empty() {
            self.forbid(&hidden, &mut converted)?;
        }
        self.add_examples(members, &mut converted)?;
        if self.document.version() == OpenApiVersion::V3_0 {
            converted = from_3_0(
                converted,
                members.get("nullable") == Some(&Value::Bool(true)),
            );
        }
        Ok(Value::Object(converted))
    }

    /// Whoever gives what only the service sets is refused: the service might believe it.
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

    fn named<'v>(
        &mut self,
        schemas: impl Iterator<Item = (&'v String, &'v Value)>,
    ) -> Result<Value, TooLarge> {
        let mut converted = Map::new();
        for (name, schema) in schemas {
            self.spend(name.len() + 4)?;
            converted.insert(name.clone(), self.convert(schema)?);
        }
        Ok(Value::Object(converted))
    }

    /// The definitions that the schemas refer to, those that these refer to among them.
    pub(super) fn definitions(mut self) -> Result<Map<String, Value>, TooLarge> {
        while let Some((name, schema)) = self.open.pop() {
            let converted = self.convert(schema)?;
            self.definitions.insert(name, converted);
        }
        Ok(self.definitions)
    }

    /// Whether a property goes this way at all.
    fn travels(&self, property: &Value) -> bool {
        let other = match self.direction {
            SchemaDirection::Input => "readOnly",
            SchemaDirection::Output => "writeOnly",
        };
        let says = |schema: &Value| schema.get(other) == Some(&Value::Bool(true));
        !says(property) && !self.document.resolve(property).is_ok_and(says)
    }

    /// The reference by which a tool's schema reaches what the document refers to; `None` where that is nowhere to be found.
    fn definition(&mut self, reference: &str) -> Result<Option<String>, TooLarge> {
        let document: &'a Document = self.document;
        let (Some(place), Ok(target)) = (pointer(reference), document.at(reference)) else {
            return Ok(None);
        };
        let name = match self.names.get(&place) {
            Some(name) => name.clone(),
            None => {
                let name = self.free_name(&place);
                self.names.insert(place, name.clone());
                self.open.push((name.clone(), target));
                self.spend(name.len() + 8)?;
                name
            }
        };
        self.spend(name.len() + 16)?;
        Ok(Some(format!("#/$defs/{name}")))
    }

    fn free_name(&self, place: &str) -> String {
        let last = place.rsplit('/').next().unwrap_or_default();
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let plain: String = last
            .chars()
            .map(|c| if fits(c) { c } else { '_' })
            .collect();
        let taken = |name: &String| self.names.values().any(|other| other == name);
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let mut names = std::iter::once(plain.clone()).chain(numbered);
        let free = names.find(|name| !taken(name));
        free.expect("there are more numbers than names")
    }

    fn add_examples(
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
        if size <= EXAMPLE {
            self.spend(size + 12)?;
            converted.insert("examples".into(), examples);
        }
        Ok(())
    }

    fn spend(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.left = self.left.checked_sub(bytes).ok_or(TooLarge)?;
        Ok(())
    }
}

/// Bytes of a value as text.
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

/// What 3.0 says in words of its own.
fn from_3_0(mut schema: Map<String, Value>, nullable: bool) -> Map<String, Value> {
    for (limit, exclusive) in [
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ] {
        match schema.get(exclusive) {
            Some(Value::Bool(true)) => match schema.remove(limit) {
                Some(value) => drop(schema.insert(exclusive.into(), value)),
                None => drop(schema.remove(exclusive)),
            },
            Some(Value::Bool(false)) => drop(schema.remove(exclusive)),
            _ => {}
        }
    }
    if !nullable {
        return schema;
    }
    if let Some(Value::String(kind)) = schema.get("type") {
        let both = json!([kind, "null"]);
        schema.insert("type".into(), both);
        if let Some(Value::Array(choices)) = schema.get_mut("enum")
            && !choices.contains(&Value::Null)
        {
            choices.push(Value::Null);
        }
        return schema;
    }
    match ["allOf", "anyOf", "oneOf"]
        .iter()
        .any(|of| schema.contains_key(*of))
    {
        // As it is meant most often, though 3.0 gives it no meaning there.
        true => Map::from_iter([("anyOf".to_owned(), json!([schema, { "type": "null" }]))]),
        false => schema,
    }
}

#[cfg(test)]
mod tests;
