use serde_json::{Map, Value};

use crate::print::plain;

pub(super) fn of(tools: &[Value]) -> String {
    let width = widest(tools.iter().map(name));
    let tool = |tool: &Value| {
        let head = format!("{:width$}  {}", name(tool), description(tool));
        let mut text = format!("{}\n", head.trim_end());
        for line in arguments(&tool["inputSchema"]) {
            text.push_str(&format!("    {line}\n"));
        }
        text
    };
    tools.iter().map(tool).collect()
}

pub(super) fn of_pools(pools: &Map<String, Value>) -> String {
    let lines = pools.iter().flat_map(|(pool, all)| {
        let all = all
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        all.map(move |one| format!("{}  {}\n", plain(pool), plain(one)))
    });
    lines.collect()
}

fn arguments(schema: &Value) -> Vec<String> {
    let required = |name: &str| {
        let names = schema["required"].as_array();
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let properties = schema["properties"].as_object();
    let mut rows: Vec<[String; 3]> = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let mut kind = kind(schema);
            if required(name) {
                kind.push_str(", required");
            }
            if let Some(default) = schema.get("default") {
                kind.push_str(&format!(", default {default}"));
            }
            [plain(name), plain(&kind), description(schema)]
        })
        .collect();
    rows.sort_by_key(|[_, kind, _]| !kind.contains(", required"));
    let names = widest(rows.iter().map(|[name, ..]| name.clone()));
    let kinds = widest(rows.iter().map(|[_, kind, _]| kind.clone()));
    let line = |[name, kind, description]: &[String; 3]| {
        let line = format!("{name:names$}  {kind:kinds$}  {description}");
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn kind(schema: &Value) -> String {
    let either = |all: Vec<String>| all.join("|");
    if let Some(choices) = schema["enum"].as_array() {
        return either(choices.iter().map(Value::to_string).collect());
    }
    if let Some(only) = schema.get("const") {
        return only.to_string();
    }
    for several in ["anyOf", "oneOf"] {
        if let Some(kinds) = schema[several].as_array() {
            return either(kinds.iter().map(kind).collect());
        }
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => match self::kind(&schema["items"]) {
            several if several.contains('|') => format!("({several})[]"),
            item => format!("{item}[]"),
        },
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => either(
            kinds
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        ),
        _ => "any".to_owned(),
    }
}

fn name(tool: &Value) -> String {
    plain(tool["name"].as_str().unwrap_or_default())
}

fn description(item: &Value) -> String {
    let text = item["description"].as_str().unwrap_or_default();
    plain(text.lines().next().unwrap_or_default())
}

fn widest(texts: impl Iterator<Item = String>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::of;

    #[test]
    fn tools_are_listed_in_columns() {
        let tools = [
            json!({ "name": "echo", "description": "Says it\nagain." }),
            json!({ "name": "long_job" }),
            json!({ "name": "bell\u{7}", "description": "\u{1b}[2J" }),
        ];
        assert_eq!(of(&tools), "echo      Says it\nlong_job\nbell       [2J\n");
        assert_eq!(of(&[]), "");
    }

    #[test]
    fn arguments_are_shown_with_type_need_default_and_description() {
        let schema = json!({
            "type": "object",
            "properties": {
                "unit": { "enum": ["c", "f"], "default": "c" },
                "city": { "type": "string", "description": "Where.\nAnywhere." },
                "days": { "type": ["integer", "null"] },
                "tags": { "type": "array", "items": { "anyOf": [{ "type": "string" }, { "const": 1 }] } },
                "more": { "$ref": "#/$defs/more" },
            },
            "required": ["city"],
        });
        let listed = of(&[json!({ "name": "weather", "inputSchema": schema })]);
        let expected = [
            "weather",
            "    city  string, required      Where.",
            "    unit  \"c\"|\"f\", default \"c\"",
            "    days  integer|null",
            "    tags  (string|1)[]",
            "    more  any",
        ];
        assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
    }
}
