//! Describes every setting from its type.

mod page;

pub use page::markdown;
use schemars::generate::SchemaSettings;
use schemars::{Schema, schema_for};
use serde_json::Value;

use super::Settings;
use super::rules::limits;
use super::setting_path::SettingPath;
use super::variable::{can_name, variable_name};

/// Matches a duration of zero.
const NO_TIME: &str = r"^[0.\sa-zµM]*$";

/// Stands for a name that operators choose.
pub(super) const ANY: &str = "<name>";

/// Returns the JSON Schema of the configuration file, for editors.
pub fn schema() -> Schema {
    let mut schema = schema_for!(Settings);
    schema.insert("title".to_owned(), "Configuration of Shoal".into());
    let settings = Settings::default();
    for setting in limits::counts(&settings, |_| true) {
        restrict(&mut schema, setting, "minimum", 1.into());
    }
    for setting in limits::times(&settings, |_| true) {
        let zero = serde_json::json!({ "pattern": NO_TIME });
        restrict(&mut schema, setting, "not", zero);
    }
    schema
}

fn restrict(schema: &mut Schema, setting: &str, word: &str, value: Value) {
    let mut place = String::new();
    for key in setting.split('.') {
        let table = schema.pointer(&place);
        let named = table.and_then(|table| table.get("$ref")?.as_str()?.strip_prefix('#'));
        let table = named.map_or_else(|| place.clone(), str::to_owned);
        place = format!("{table}/properties/{key}");
    }
    if let Some(part) = schema.pointer_mut(&place).and_then(Value::as_object_mut) {
        part.insert(word.to_owned(), value);
    }
}

/// [`ANY`] stands for a name that operators choose.
pub(super) fn settings() -> Vec<Vec<String>> {
    let mut all = Vec::new();
    collect(&inlined(), &mut Vec::new(), &mut all);
    all
}

pub(super) fn collect(schema: &Value, at: &mut Vec<String>, all: &mut Vec<Vec<String>>) {
    for (key, member) in members(schema) {
        at.push(key.to_owned());
        all.push(at.clone());
        collect(member, at, all);
        at.pop();
    }
    if let Some(each) = schema
        .get("additionalProperties")
        .filter(|each| is_table(each))
    {
        at.push(ANY.to_owned());
        collect(each, at, all);
        at.pop();
    }
    for variant in variants(schema) {
        collect(variant, at, all);
    }
}

/// `None` for tables and unknown settings.
pub(super) fn help(path: &[String]) -> Option<String> {
    let root = inlined();
    let setting = path
        .iter()
        .try_fold(&root, |schema, key| member(schema, key))?;
    if is_table(setting) || text_of(setting).is_empty() {
        return None;
    }
    let name = SettingPath::of_keys(path);
    let mut help = format!("{name}: {}", text_of(setting));
    let choices = choices(setting);
    if !choices.is_empty() {
        help.push_str(&format!(" One of {}.", choices.join(", ")));
    }
    if let Some(default) = default_of(setting) {
        help.push_str(&format!(" Default: {default}."));
    }
    let keys: Vec<&str> = path.iter().map(String::as_str).collect();
    if !keys.iter().all(|key| can_name(key)) {
        return Some(help);
    }
    help.push_str(&format!(" As a variable: {}.", variable_name(&keys)));
    Some(help)
}

pub(super) fn inlined() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
    });
    settings
        .into_generator()
        .into_root_schema_for::<Settings>()
        .to_value()
}

pub(super) fn member<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    let own = schema["properties"].get(key);
    let named = || {
        schema
            .get("additionalProperties")
            .filter(|schema| schema.is_object())
    };
    let variant = || {
        variants(schema)
            .into_iter()
            .find_map(|variant| variant.get("properties").and_then(|p| p.get(key)))
    };
    own.or_else(named).or_else(variant)
}

/// Leaves out the null of an optional value.
pub(super) fn variants(schema: &Value) -> Vec<&Value> {
    let alternatives = ["oneOf", "anyOf"]
        .into_iter()
        .filter_map(|keyword| schema.get(keyword)?.as_array())
        .flatten();
    alternatives
        .flat_map(|alternative| match variants(alternative) {
            own if own.is_empty() => vec![alternative],
            own => own,
        })
        .collect()
}

pub(super) fn is_table(schema: &Value) -> bool {
    schema.get("properties").is_some() || schema.get("additionalProperties").is_some()
}

pub(super) fn choices(schema: &Value) -> Vec<String> {
    let listed = |schema: &Value| -> Vec<Value> {
        let several = schema.get("enum").and_then(Value::as_array).cloned();
        several.unwrap_or_else(|| schema.get("const").cloned().into_iter().collect())
    };
    std::iter::once(schema)
        .chain(variants(schema))
        .flat_map(listed)
        .filter(|value| !value.is_null())
        .map(|value| value.to_string())
        .collect()
}

fn text_of(schema: &Value) -> String {
    schema["description"]
        .as_str()
        .unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn default_of(schema: &Value) -> Option<String> {
    let default = schema.get("default").filter(|value| !value.is_null())?;
    toml::Value::try_from(default)
        .ok()
        .map(|value| value.to_string())
}

fn members(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, member)| (name.as_str(), member))
}
