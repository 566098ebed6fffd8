//! Converts an OpenAPI document to tools and prints the outcome as a line of JSON.
//!
//!     openapi_preview DOCUMENT [LIST]
//!
//! LIST is a file for the answer to `tools/list`. `scripts/openapi-corpus` runs this program over many documents.
#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "this is a program"
)]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use serde_json::{Value, json};
use shoal_worker::{DocumentPreview, OpenApiConfig};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (document, list) = match arguments.as_slice() {
        [document] => (document, None),
        [document, list] => (document, Some(list)),
        _ => {
            eprintln!("usage: openapi_preview DOCUMENT [LIST]");
            return ExitCode::from(2);
        }
    };
    match report(document, list) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{document}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn report(document: &str, list: Option<&String>) -> std::io::Result<Value> {
    let text = std::fs::read(document)?;
    let config = OpenApiConfig {
        document_bytes: usize::MAX,
        tools_bytes: usize::MAX,
        ..OpenApiConfig::new(document)
    };
    let began = Instant::now();
    let converted = DocumentPreview::of(&text, &config);
    let seconds = began.elapsed().as_secs_f64();
    let memory = most_memory();
    let preview = match converted {
        Ok(preview) => preview,
        Err(why) => {
            return Ok(
                json!({ "document": document, "started": false, "why": why, "seconds": seconds, "memory": memory }),
            );
        }
    };
    let listed = json!({ "tools": preview.tools });
    let listed = listed.to_string();
    let tools: Vec<Value> = preview
        .tools
        .iter()
        .filter_map(|tool| tool.read().ok())
        .collect();
    let mut wrong = Vec::new();
    for tool in &tools {
        check(tool, &mut wrong);
    }
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for left_out in &preview.left_out {
        let reason = left_out.split_once(": ").map_or("", |(_, reason)| reason);
        *reasons.entry(reason).or_default() += 1;
    }
    if let Some(list) = list {
        std::fs::write(list, &listed)?;
    }
    Ok(json!({
        "document": document,
        "started": true,
        "tools": tools.len(),
        "structured": tools.iter().filter(|tool| tool.get("outputSchema").is_some()).count(),
        "left_out": reasons,
        "cut": preview.cut.len(),
        "wrong": wrong,
        "bytes": listed.len(),
        "seconds": seconds,
        "memory": memory,
    }))
}

fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    most.and_then(|most| most.parse::<u64>().ok())
        .unwrap_or_default()
        / 1024
}

fn check(tool: &Value, wrong: &mut Vec<Value>) {
    let name = tool["name"].as_str().unwrap_or_default();
    if !is_legal(name, "_-") {
        wrong.push(json!({ "kind": "name", "tool": name, "what": name }));
    }
    for place in ["inputSchema", "outputSchema"] {
        let Some(schema) = tool.get(place) else {
            continue;
        };
        if place == "inputSchema" {
            for key in illegal_keys(schema) {
                wrong.push(json!({ "kind": "key", "tool": name, "what": key }));
            }
            if let Some(why) = refused_by_models(schema) {
                wrong.push(json!({ "kind": "model", "tool": name, "what": why }));
            }
        }
        if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
            let what = format!("{place}{}: {error}", error.instance_path());
            wrong.push(json!({ "kind": "meta", "tool": name, "what": short(&what) }));
        } else if let Err(error) = jsonschema::draft202012::new(schema) {
            let what = format!("{place}: {error}");
            wrong.push(json!({ "kind": "compile", "tool": name, "what": short(&what) }));
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(300).collect()
}

fn is_legal(name: &str, others: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    (1..=64).contains(&name.len()) && name.chars().all(fits)
}

/// Returns the part of an input schema that the APIs of Claude and OpenAI refuse, except property
/// names.
fn refused_by_models(schema: &Value) -> Option<String> {
    if schema["type"] != "object" {
        return Some("the root is no object".to_owned());
    }
    let combined = ["allOf", "anyOf", "enum", "not", "oneOf"]
        .iter()
        .find(|of| schema.get(**of).is_some());
    if let Some(of) = combined {
        return Some(format!("{of} stands at the root"));
    }
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                let is_list = members.get("type").is_some_and(|kind| kind == "array");
                if is_list && !members.contains_key("items") {
                    return Some("a list has no items".to_owned());
                }
                let values = members
                    .iter()
                    .filter(|(name, _)| !VALUES.contains(&name.as_str()));
                open.extend(values.map(|(_, value)| value));
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    None
}

/// Keywords whose values are not schemas.
const VALUES: [&str; 4] = ["const", "default", "enum", "examples"];

/// Returns the property names that Claude's API refuses, at any depth.
fn illegal_keys(schema: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                for (keyword, value) in members {
                    if let ("properties", Value::Object(named)) = (keyword.as_str(), value) {
                        found.extend(named.keys().filter(|key| !is_legal(key, "_.-")));
                        open.extend(named.values());
                    } else if !VALUES.contains(&keyword.as_str()) {
                        open.push(value);
                    }
                }
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found.into_iter().map(String::as_str).collect()
}
