//! Explains why a value does not fit, and how to write what is probably meant.

use serde_json::Value as Schema;
use shoal_ports::listen_address;
use toml::Value;

use super::super::holds_secrets;
use super::super::reference::{choices, is_table, variants};
use super::super::setting_path::{PathStep, SettingPath};
use super::suggestions::nearest;

const LONGEST: usize = 60;

pub(super) fn of(schema: &Schema, value: &Value, path: &SettingPath) -> Option<String> {
    let choices = choices(schema);
    match (value, kind(schema)) {
        (Value::String(text), _) if !choices.is_empty() => {
            let quoted = format!("{text:?}");
            (!choices.contains(&quoted)).then(|| no_choice(schema, text, &choices))
        }
        (Value::String(_), Kind::Text) | (Value::Boolean(_), Kind::Truth) => None,
        (Value::Integer(_) | Value::Float(_), Kind::Number) => None,
        (Value::Integer(_), Kind::Text) if schema["format"] == listen_address::FORMAT => None,
        (Value::Integer(number), Kind::Whole) => out_of_range(schema, *number),
        (value, kind) => Some(advise(schema, value, kind, path)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Whole,
    Number,
    Truth,
    List,
    Table,
    Tagged,
}

fn kind(schema: &Schema) -> Kind {
    let is = |kind: &str| match &schema["type"] {
        Schema::Array(kinds) => kinds.iter().any(|it| it == kind),
        one => one == kind,
    };
    if is_table(schema) {
        Kind::Table
    } else if variants(schema).into_iter().any(is_table) {
        Kind::Tagged
    } else if is("integer") {
        Kind::Whole
    } else if is("number") {
        Kind::Number
    } else if is("boolean") {
        Kind::Truth
    } else if is("array") {
        Kind::List
    } else {
        Kind::Text
    }
}

fn no_choice(schema: &Schema, text: &str, choices: &[String]) -> String {
    let tags: Vec<String> = tags(schema);
    if tags.iter().any(|tag| tag == text) {
        return format!("{text:?} has settings of its own: write {{ {text} = {{ … }} }}");
    }
    let texts = choices
        .iter()
        .map(|choice| choice.trim_matches('"').to_owned());
    let names: Vec<String> = texts.chain(tags.iter().cloned()).collect();
    let meant = match nearest(text, &names) {
        Some(meant) if tags.iter().any(|tag| tag == meant) => {
            format!("; did you mean {{ {meant} = {{ … }} }}?")
        }
        Some(meant) => format!("; did you mean {meant:?}?"),
        None => String::new(),
    };
    let tags = tags.iter().map(|tag| format!("{{ {tag} = {{ … }} }}"));
    let all: Vec<String> = choices.iter().cloned().chain(tags).collect();
    format!(
        "{} is not one of {}{meant}",
        cut(&format!("{text:?}")),
        all.join(", ")
    )
}

fn tags(schema: &Schema) -> Vec<String> {
    variants(schema).into_iter().flat_map(super::keys).collect()
}

fn out_of_range(schema: &Schema, number: i64) -> Option<String> {
    let least = schema["minimum"].as_i64();
    if least.is_some_and(|least| number < least) {
        return Some(format!(
            "{number} is less than {}",
            least.unwrap_or_default()
        ));
    }
    let most = match schema["format"].as_str() {
        Some("uint8") => i64::from(u8::MAX),
        Some("uint16") => i64::from(u16::MAX),
        Some("uint32") => i64::from(u32::MAX),
        _ => return None,
    };
    (number > most).then(|| format!("{number} is more than {most}"))
}

fn advise(schema: &Schema, value: &Value, kind: Kind, path: &SettingPath) -> String {
    let found = found(schema, value, path);
    let example = schema["examples"][0].as_str();
    match (kind, value) {
        (Kind::Whole | Kind::Number, Value::String(text)) if text.trim().parse::<f64>().is_ok() => {
            format!("{found} is text: write the number without quotes")
        }
        (Kind::Whole, Value::String(text)) if text.starts_with(|it: char| it.is_ascii_digit()) => {
            format!("{found} has a unit, but a whole number without one is needed, without quotes")
        }
        (Kind::Whole, _) => format!("{found} stands where a whole number is needed"),
        (Kind::Number, _) => format!("{found} stands where a number is needed"),
        (Kind::Truth, _) => format!("{found} stands where true or false is needed, without quotes"),
        (Kind::Text, Value::Integer(number)) if example.is_some_and(is_time) => {
            format!(
                "{number} has no unit: write \"{number}s\" for seconds, or \"{number}ms\" for milliseconds"
            )
        }
        (Kind::Text, Value::Integer(_)) => match example {
            Some(example) => format!("{found} stands where text such as {example:?} is needed"),
            None => format!("{found} stands where text is needed: put it in quotes"),
        },
        (Kind::Text, _) if !choices(schema).is_empty() => {
            let choices = choices(schema).join(", ");
            format!("{found} stands where one of {choices} is needed")
        }
        (Kind::Text, _) => format!("{found} stands where text in quotes is needed"),
        (Kind::List, Value::Table(_)) if is_table(&schema["items"]) => {
            format!("this is a list of tables: write [[{path}]], with two brackets, before each")
        }
        (Kind::List, Value::String(_)) => {
            format!("{found} stands where a list is needed: put it in brackets, [\"…\"]")
        }
        (Kind::List, _) => format!("{found} stands where a list is needed, in brackets"),
        (Kind::Table, _) if matches!(path.0.last(), Some(PathStep::Index(_))) => {
            let names = super::keys(schema).join(", ");
            format!("{found} stands where a table is needed, in braces, with {names}")
        }
        (Kind::Table, _) => {
            let any = match schema.get("properties") {
                Some(_) => "",
                None => ".<name>",
            };
            format!(
                "{found} stands where a table is needed: write its settings below [{path}{any}]"
            )
        }
        (Kind::Tagged, _) => {
            let choices = choices(schema).into_iter();
            let tags = tags(schema)
                .into_iter()
                .map(|tag| format!("{{ {tag} = … }}"));
            let all: Vec<String> = choices.chain(tags).collect();
            format!("{found} stands where one of {} is needed", all.join(", "))
        }
    }
}

fn is_time(example: &str) -> bool {
    example.ends_with('s')
}

/// Replaces secrets by a placeholder.
fn found(schema: &Schema, value: &Value, path: &SettingPath) -> String {
    match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        value if is_secret(schema) => secret(value),
        value => shown(value, path),
    }
}

fn is_secret(schema: &Schema) -> bool {
    let below = |schema: &Schema| match schema {
        Schema::Object(members) => members.values().any(is_secret),
        Schema::Array(items) => items.iter().any(is_secret),
        _ => false,
    };
    schema["writeOnly"] == true || below(schema)
}

fn secret(value: &Value) -> String {
    match value {
        Value::String(_) => "a text".to_owned(),
        _ => "a value".to_owned(),
    }
}

/// Shortens a value, and replaces secrets.
pub(crate) fn shown(value: &Value, path: &SettingPath) -> String {
    match value {
        value if holds_secrets(&path.keys()) => secret(value),
        Value::String(text) => cut(&format!("{text:?}")),
        other => cut(&other.to_string()),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
