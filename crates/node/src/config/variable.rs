//! Shoal's variables: their names, and how they stand for settings.

use toml::Value;

use super::setting_path::is_bare;

pub(super) const PREFIX: &str = "SHOAL_";
/// Separates the parts of a setting's name. Kubernetes adds variables such as `SHOAL_PORT` to every pod beside a
/// service called `shoal`, so names without a separator are ignored, except for `LISTS`.
const SEPARATOR: &str = "__";
/// Settings outside of tables.
const LISTS: &[&str] = &["QUOTAS"];

/// A variable that sets a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// The variable's name.
    pub name: String,
    /// The setting's path.
    pub path: Vec<String>,
    /// The value, parsed as TOML if possible, otherwise as text.
    pub value: Value,
}

impl Variable {
    /// Reads a variable if its name is the name of a setting.
    pub(super) fn of(name: &str, text: &str) -> Option<Self> {
        let rest = name.strip_prefix(PREFIX)?;
        if !rest.contains(SEPARATOR) && !LISTS.contains(&rest) {
            return None;
        }
        let mut path: Vec<String> = Vec::new();
        for part in rest.split(SEPARATOR) {
            let part = if names_variables(&path) {
                part.to_owned()
            } else {
                part.to_lowercase()
            };
            path.push(part);
        }
        Some(Self {
            value: value(text),
            path,
            name: name.to_owned(),
        })
    }
}

pub(super) fn can_name(key: &str) -> bool {
    is_bare(key) && !key.contains(SEPARATOR)
}

pub(super) fn variable_name(path: &[&str]) -> String {
    format!("{PREFIX}{}", path.join(SEPARATOR).to_uppercase())
}

/// Names of environment variables are case-sensitive.
fn names_variables(path: &[String]) -> bool {
    matches!(path, [pools, _, .., env] if pools == "pools" && env == "env" && path.len() == 5)
}

/// Parses a setting's value as TOML if possible, otherwise as text.
pub fn value(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<toml::Table>();
    let parsed = parsed.ok().filter(|table| table.len() == 1);
    match parsed.and_then(|mut table| table.remove("value")) {
        // No setting is a date, so a prefix that looks like a date is text.
        Some(Value::Datetime(_)) | None => Value::String(text.to_owned()),
        Some(value) => value,
    }
}
