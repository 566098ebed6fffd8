//! Reads the process environment. No other file of Shoal does.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

use toml::Value;

use super::finding::Finding;
use super::layers::Source;
use super::{reference, standard};

/// The configuration file.
pub const CONFIG_FILE: &str = "SHOAL_CONFIG";
/// The bearer token of `shoal stdio --url`. Other users could see a token on the command line.
pub const TOKEN: &str = "SHOAL_TOKEN";

const PREFIX: &str = "SHOAL_";
/// Kubernetes adds variables such as `SHOAL_PORT` to every pod beside a service called `shoal`, so names without a
/// separator are ignored, except for `LISTS`.
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

/// Shoal's part of the environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// The configuration file in [`CONFIG_FILE`].
    pub config_file: Option<PathBuf>,
    /// The token in [`TOKEN`].
    pub token: Option<String>,
    /// Settings by name, so that a whole table comes before its members.
    pub variables: Vec<Variable>,
    /// Names with Shoal's prefix that set nothing.
    pub unread: Vec<String>,
    /// Settings from OpenTelemetry's variables (`OTEL_…`), which every other source overrides.
    pub standard: Vec<Variable>,
}

impl Environment {
    /// Reads this process's environment.
    pub fn of_process() -> Self {
        Self::of(env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }))
    }

    /// Reads the given variables.
    pub fn of(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut environment = Self::default();
        let mut of_telemetry = BTreeMap::new();
        for (name, text) in variables {
            match name.as_str() {
                CONFIG_FILE => environment.config_file = Some(text.into()),
                TOKEN => environment.token = Some(text),
                _ if name.starts_with(standard::PREFIX) => {
                    of_telemetry.insert(name, text);
                }
                _ => match variable(&name, &text) {
                    Some(variable) => environment.variables.push(variable),
                    None if name.starts_with(PREFIX) => environment.unread.push(name),
                    None => {}
                },
            }
        }
        environment.unread.sort();
        environment.variables.sort_by(|a, b| a.path.cmp(&b.path));
        environment.standard = standard::settings(&of_telemetry);
        environment
    }
}

impl Environment {
    /// Warns about variables that probably mean settings, but have one underscore between the parts.
    pub(super) fn without_effect(&self) -> Vec<Finding> {
        if self.unread.is_empty() {
            return Vec::new();
        }
        let settings = reference::settings();
        let meant = |name: &&String| {
            let same = |path: &&Vec<String>| {
                format!("{PREFIX}{}", path.join("_").to_uppercase()) == **name
            };
            let found = settings.iter().find(same)?;
            let keys: Vec<&str> = found.iter().map(String::as_str).collect();
            Some(Finding {
                setting: found.join("."),
                origin: Source::Variable((*name).clone()),
                position: None,
                problem: format!(
                    "it sets nothing: two underscores stand between the parts, {}",
                    variable_name(&keys)
                ),
                help: None,
            })
        };
        self.unread.iter().filter_map(|name| meant(&name)).collect()
    }
}

pub(super) fn can_name(key: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !key.is_empty() && key.bytes().all(fits) && !key.contains(SEPARATOR)
}

pub(super) fn variable_name(path: &[&str]) -> String {
    format!("{PREFIX}{}", path.join(SEPARATOR).to_uppercase())
}

fn variable(name: &str, text: &str) -> Option<Variable> {
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
    Some(Variable {
        value: value(text),
        path,
        name: name.to_owned(),
    })
}

/// Names of environment variables are case-sensitive.
fn names_variables(path: &[String]) -> bool {
    matches!(path, [pools, _, .., env] if pools == "pools" && env == "env" && path.len() == 5)
}

/// Parses TOML if possible, otherwise text.
pub fn value(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<toml::Table>();
    let parsed = parsed.ok().filter(|table| table.len() == 1);
    match parsed.and_then(|mut table| table.remove("value")) {
        // No setting is a date, so a pool's prefix that looks like a date is text.
        Some(Value::Datetime(_)) | None => Value::String(text.to_owned()),
        Some(value) => value,
    }
}
