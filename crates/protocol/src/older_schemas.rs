//! Converts keywords of older JSON Schema drafts to 2020-12, except in subschemas.

use serde_json::{Map, Value, json};

const EXCLUSIVE: [(&str, &str); 2] = [
    ("exclusiveMinimum", "minimum"),
    ("exclusiveMaximum", "maximum"),
];

/// Converts boolean limits (draft-04, OpenAPI 3.0). Returns the converted keywords.
pub fn rewrite_exclusive_limits(schema: &mut Map<String, Value>) -> Vec<&'static str> {
    let mut rewritten = Vec::new();
    for (exclusive, limit) in EXCLUSIVE {
        let Some(Value::Bool(is_exclusive)) = schema.get(exclusive).cloned() else {
            continue;
        };
        schema.shift_remove(exclusive);
        if is_exclusive && let Some(limit) = schema.shift_remove(limit) {
            schema.insert(exclusive.to_owned(), limit);
        }
        rewritten.push(exclusive);
    }
    rewritten
}

/// Converts a list in `items` to `prefixItems`. Returns whether `items` was a list.
pub fn rewrite_item_list(schema: &mut Map<String, Value>) -> bool {
    if !schema.get("items").is_some_and(Value::is_array) {
        return false;
    }
    if let Some(items) = schema.shift_remove("items") {
        schema.insert("prefixItems".to_owned(), items);
    }
    if let Some(rest) = schema.shift_remove("additionalItems") {
        schema.insert("items".to_owned(), rest);
    }
    true
}

/// Converts `required: true` inside properties (draft-03). Returns the names of these properties.
pub fn rewrite_required_flags(schema: &mut Map<String, Value>) -> Vec<String> {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return Vec::new();
    };
    let (mut rewritten, mut names) = (Vec::new(), Vec::new());
    for (name, property) in properties.iter_mut() {
        let Value::Object(property) = property else {
            continue;
        };
        let Some(Value::Bool(is_required)) = property.get("required").cloned() else {
            continue;
        };
        property.shift_remove("required");
        if is_required {
            names.push(json!(name));
        }
        rewritten.push(name.clone());
    }
    if !names.is_empty()
        && let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([]))
    {
        names.retain(|name| !required.contains(name));
        required.append(&mut names);
    }
    rewritten
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{rewrite_exclusive_limits, rewrite_item_list, rewrite_required_flags};

    fn rewritten<T>(schema: Value, rewrite: fn(&mut Map<String, Value>) -> T) -> (Value, T) {
        let Value::Object(mut schema) = schema else {
            panic!("{schema}");
        };
        let told = rewrite(&mut schema);
        (Value::Object(schema), told)
    }

    #[test]
    fn exclusive_limits_are_numbers() {
        for (older, newer, told) in [
            (
                json!({"minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false}),
                json!({"exclusiveMinimum": 0, "maximum": 9}),
                vec!["exclusiveMinimum", "exclusiveMaximum"],
            ),
            (
                json!({"exclusiveMinimum": true}),
                json!({}),
                vec!["exclusiveMinimum"],
            ),
            (
                json!({"exclusiveMinimum": 3}),
                json!({"exclusiveMinimum": 3}),
                vec![],
            ),
        ] {
            assert_eq!(rewritten(older, rewrite_exclusive_limits), (newer, told));
        }
    }

    #[test]
    fn a_list_of_items_is_a_prefix() {
        for (older, newer, told) in [
            (
                json!({"items": [{}], "additionalItems": false}),
                json!({"prefixItems": [{}], "items": false}),
                true,
            ),
            (json!({"items": []}), json!({"prefixItems": []}), true),
            (
                json!({"items": {}, "additionalItems": false}),
                json!({"items": {}, "additionalItems": false}),
                false,
            ),
        ] {
            assert_eq!(rewritten(older, rewrite_item_list), (newer, told));
        }
    }

    #[test]
    fn required_properties_are_named() {
        let older = json!({"required": ["a"], "properties": {
            "a": {"required": true}, "b": {"required": true}, "c": {"required": false}, "d": {"required": ["x"]}, "e": true}});
        let newer = json!({"required": ["a", "b"], "properties": {
            "a": {}, "b": {}, "c": {}, "d": {"required": ["x"]}, "e": true}});
        let told = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(rewritten(older, rewrite_required_flags), (newer, told));
    }
}
