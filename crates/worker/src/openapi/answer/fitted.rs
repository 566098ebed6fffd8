//! Removes parts of structured content that break the `outputSchema`, because clients would refuse the whole
//! result.

use serde_json::{Map, Value, json};

const STEPS_PER_BYTE: usize = 16;
const LEAST_STEPS: usize = 100_000;
const MOST_HOPS: usize = 32;
/// Holds an answer that is not an object.
const RESULT: &str = "result";

#[derive(Debug, PartialEq)]
pub(super) enum Fitted {
    Whole,
    Partly(Value),
}

/// `schema` is made by `loose`, and `bytes` is the answer's length.
pub(super) fn fitted(mut answer: Value, schema: &Value, bytes: usize) -> Fitted {
    if !answer.is_object() {
        let is_free = schema["properties"].get(RESULT).is_none();
        return Fitted::Partly(match is_free {
            true => json!({ RESULT: answer }),
            false => json!({}),
        });
    }
    let steps = LEAST_STEPS + STEPS_PER_BYTE * bytes;
    let mut walk = FittingWalk {
        root: schema,
        left: steps,
    };
    if walk.fits(&answer, schema, 0) {
        return Fitted::Whole;
    }
    walk.left = steps;
    match walk.cut(&mut answer, schema, 0) {
        true => Fitted::Partly(answer),
        false => Fitted::Partly(json!({})),
    }
}

struct FittingWalk<'a> {
    root: &'a Value,
    left: usize,
}

impl<'a> FittingWalk<'a> {
    fn fits(&mut self, value: &Value, schema: &'a Value, hops: usize) -> bool {
        let Some(schema) = self.applying(value, schema, hops) else {
            return false;
        };
        let mut same = self.same_value(schema);
        if !same.all(|other| self.fits(value, other, hops + 1)) {
            return false;
        }
        let any = schema.get("anyOf").and_then(Value::as_array);
        if !any.is_none_or(|any| any.iter().any(|other| self.fits(value, other, hops + 1))) {
            return false;
        }
        match value {
            Value::Object(members) => members.iter().all(|(name, value)| {
                member(schema, name).is_none_or(|schema| self.fits(value, schema, 0))
            }),
            Value::Array(items) => schema
                .get("items")
                .is_none_or(|schema| items.iter().all(|item| self.fits(item, schema, 0))),
            _ => true,
        }
    }

    /// Returns whether the rest fits.
    fn cut(&mut self, value: &mut Value, schema: &'a Value, hops: usize) -> bool {
        let Some(schema) = self.applying(value, schema, hops) else {
            return false;
        };
        let mut same = self.same_value(schema);
        if !same.all(|other| self.cut(value, other, hops + 1)) {
            return false;
        }
        if let Some(any) = schema.get("anyOf").and_then(Value::as_array)
            && !any.iter().any(|other| self.fits(value, other, hops + 1))
            && !any
                .iter()
                .any(|other| self.cut_copy(value, other, hops + 1))
        {
            return false;
        }
        match value {
            Value::Object(members) => members.retain(|name, value| {
                member(schema, name).is_none_or(|schema| self.cut(value, schema, 0))
            }),
            Value::Array(items) => {
                for item in items {
                    // `null` keeps the positions of later items.
                    if let Some(schema) = schema.get("items")
                        && !self.cut(item, schema, 0)
                    {
                        *item = Value::Null;
                    }
                }
            }
            _ => {}
        }
        true
    }

    /// Cuts a copy, and replaces the value only if what is left fits.
    fn cut_copy(&mut self, value: &mut Value, schema: &'a Value, hops: usize) -> bool {
        let Some(left) = self.left.checked_sub(nodes(value)) else {
            return false;
        };
        self.left = left;
        let mut copy = value.clone();
        let fits = self.cut(&mut copy, schema, hops);
        if fits {
            *value = copy;
        }
        fits
    }

    /// `None` if the type is wrong or no steps are left.
    fn applying(
        &mut self,
        value: &Value,
        schema: &'a Value,
        hops: usize,
    ) -> Option<&'a Map<String, Value>> {
        self.left = self.left.checked_sub(1)?;
        let schema = schema.as_object()?;
        (hops <= MOST_HOPS && is_of_type(value, schema.get("type"))).then_some(schema)
    }

    fn same_value(
        &self,
        schema: &'a Map<String, Value>,
    ) -> impl Iterator<Item = &'a Value> + use<'a> {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let root = self.root;
        let target = reference.map(|reference| {
            let pointer = reference.strip_prefix('#').unwrap_or(reference);
            root.pointer(pointer).unwrap_or(&Value::Null)
        });
        let all = schema.get("allOf").and_then(Value::as_array);
        target.into_iter().chain(all.into_iter().flatten())
    }
}

fn member<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let own = schema.get("properties").and_then(|all| all.get(name));
    own.or_else(|| schema.get("additionalProperties"))
}

fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(nodes).sum::<usize>(),
        _ => 1,
    }
}

fn is_of_type(value: &Value, kinds: Option<&Value>) -> bool {
    let is = |kind: &Value| match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("number") => value.is_number(),
        Some("integer") => {
            value.is_i64()
                || value.is_u64()
                || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => true,
    };
    match kinds {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(is),
        Some(kind) => is(kind),
    }
}

#[cfg(test)]
mod tests;
