use serde_json::{Map, Value, json};
use shoal_protocol::{rewrite_exclusive_limits, rewrite_item_list};

pub(super) fn finished(mut schema: Map<String, Value>, nullable: bool) -> Map<String, Value> {
    rewrite_exclusive_limits(&mut schema);
    items(&mut schema);
    choices(&mut schema);
    match nullable {
        true => or_null(schema),
        false => schema,
    }
}

pub(super) fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

pub(super) fn written(kinds: &[&str]) -> Value {
    match kinds {
        [kind] => json!(kind),
        several => json!(several),
    }
}

pub(super) fn allow_null(kinds: &mut Vec<&'static str>) {
    if !kinds.contains(&"null") {
        kinds.push("null");
    }
}

/// Clients refuse a list without `items`.
fn items(schema: &mut Map<String, Value>) {
    rewrite_item_list(schema);
    // The keyword has no meaning without a list of items.
    schema.remove("additionalItems");
    let kinds = schema.get("type");
    let is_list = kinds.is_some_and(|kinds| match kinds {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "array"),
        kind => kind == "array",
    });
    if (is_list || schema.contains_key("prefixItems")) && !schema.contains_key("items") {
        schema.insert("items".into(), json!({}));
    }
}

/// Converts choices to the schema's type, because authors forget quotes in YAML, or quote numbers.
fn choices(schema: &mut Map<String, Value>) {
    let kind = schema.get("type").and_then(Value::as_str);
    let kind = kind.map(str::to_owned);
    let Some(Value::Array(choices)) = schema.get_mut("enum") else {
        return;
    };
    for choice in choices.iter_mut() {
        let meant = match (kind.as_deref(), &*choice) {
            (Some("string"), Value::Number(_) | Value::Bool(_)) => json!(choice.to_string()),
            (Some("integer" | "number" | "boolean"), Value::String(written)) => {
                match serde_json::from_str(written.trim()) {
                    Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
                    _ => continue,
                }
            }
            _ => continue,
        };
        *choice = meant;
    }
}

fn or_null(mut schema: Map<String, Value>) -> Map<String, Value> {
    if ["$ref", "allOf", "anyOf", "oneOf", "const"]
        .iter()
        .any(|of| schema.contains_key(*of))
    {
        // OpenAPI 3.0 ignores `nullable` here, but authors usually mean it.
        let mut outer = Map::new();
        if let Some(description) = schema.remove("description") {
            outer.insert("description".into(), description);
        }
        outer.insert("anyOf".into(), json!([schema, { "type": "null" }]));
        return outer;
    }
    match schema.get_mut("type") {
        Some(Value::Array(kinds)) if !kinds.contains(&json!("null")) => kinds.push(json!("null")),
        Some(Value::String(kind)) if kind != "null" => {
            let both = json!([kind, "null"]);
            schema.insert("type".into(), both);
        }
        _ => {}
    }
    if let Some(Value::Array(choices)) = schema.get_mut("enum")
        && !choices.contains(&Value::Null)
    {
        choices.push(Value::Null);
    }
    schema
}
