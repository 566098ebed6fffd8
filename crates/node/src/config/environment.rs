//! Reads settings from the process environment.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

use super::finding::Finding;
use super::layers::Source;
use super::variable::{PREFIX, Variable, variable_name};
use super::{reference, standard};

/// The configuration file.
pub const CONFIG_FILE: &str = "SHOAL_CONFIG";
/// The bearer token of `shoal stdio --url`. Other users could see a token on the command line.
pub const TOKEN: &str = "SHOAL_TOKEN";

/// Shoal's part of the environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// The configuration file in [`CONFIG_FILE`].
    pub config_file: Option<PathBuf>,
    /// The token in [`TOKEN`].
    pub token: Option<String>,
    /// Settings in the order of their names, so that a whole table comes before its members.
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
                _ => match Variable::of(&name, &text) {
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
    /// Warns about variables that name a setting, but with one underscore between the parts instead of two.
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
