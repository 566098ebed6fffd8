//! Reports every deviation of a configuration from the settings' schema.

mod misfit;
mod suggestions;

use serde_json::Value as Schema;
use toml::{Table, Value};

use super::reference::{choices, is_table, member, variants};
use super::setting_path::{PathStep, SettingPath};
use suggestions::Suggestions;

pub(super) use misfit::shown;

pub(super) struct Deviation {
    pub(super) path: SettingPath,
    pub(super) problem: Problem,
}

pub(super) enum Problem {
    /// `meant` are the settings that the operator may mean, and `known` are those of the same table.
    Unknown {
        meant: Vec<Vec<String>>,
        known: Vec<String>,
    },
    Missing,
    Misfit(String),
}

pub(super) fn of(schema: &Schema, table: &Table) -> Vec<Deviation> {
    let mut walk = DeviationWalk {
        suggestions: Suggestions::of(schema),
        found: Vec::new(),
    };
    walk.table(schema, table, &SettingPath::default());
    walk.found
}

/// Returns what to remove with a wrong setting: the setting, or the table that requires it.
pub(super) fn droppable(schema: &Schema, path: &SettingPath) -> SettingPath {
    let mut keep = 0;
    let mut at = Some(schema);
    for (depth, step) in path.0.iter().enumerate() {
        let Some(schema) = at else {
            break;
        };
        let schema = plain_variant(schema).unwrap_or(schema);
        match step {
            PathStep::Index(_) => {
                keep = depth + 1;
                at = schema.get("items");
            }
            PathStep::Key(key) => {
                let tagged = !is_table(schema) && variants(schema).into_iter().any(is_table);
                if !tagged && !required(schema).any(|name| name == key) {
                    keep = depth + 1;
                }
                at = member(schema, key);
            }
        }
    }
    SettingPath(path.0[..keep.max(1).min(path.0.len())].to_vec())
}

fn required(schema: &Schema) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Schema::as_array);
    names.into_iter().flatten().filter_map(Schema::as_str)
}

/// Removes null from an optional value.
fn plain_variant(schema: &Schema) -> Option<&Schema> {
    match variants(schema)[..] {
        [one, null] if null["type"] == "null" => Some(one),
        _ => None,
    }
}

struct DeviationWalk {
    suggestions: Suggestions,
    found: Vec<Deviation>,
}

impl DeviationWalk {
    fn add(&mut self, path: SettingPath, problem: Problem) {
        self.found.push(Deviation { path, problem });
    }

    fn value(&mut self, schema: &Schema, value: &Value, path: &SettingPath) {
        if let Some(schema) = plain_variant(schema) {
            return self.value(schema, value, path);
        }
        let kinds: Vec<&Schema> = variants(schema)
            .into_iter()
            .filter(|it| is_table(it))
            .collect();
        match value {
            Value::Table(table) if is_table(schema) => self.table(schema, table, path),
            Value::Table(table) if !kinds.is_empty() => self.tagged(schema, &kinds, table, path),
            Value::Array(items) if schema["type"] == "array" => {
                for (index, item) in items.iter().enumerate() {
                    self.value(&schema["items"], item, &path.index(index));
                }
            }
            value => {
                if let Some(reason) = misfit::of(schema, value, path) {
                    self.add(path.clone(), Problem::Misfit(reason));
                }
            }
        }
    }

    fn table(&mut self, schema: &Schema, table: &Table, path: &SettingPath) {
        for (key, value) in table {
            match member(schema, key) {
                Some(member) => self.value(member, value, &path.key(key)),
                None => self.unknown(schema, path.key(key), key),
            }
        }
        for name in required(schema).filter(|name| !table.contains_key(*name)) {
            self.add(path.key(name), Problem::Missing);
        }
    }

    /// The only key names the kind of the table's value.
    fn tagged(&mut self, schema: &Schema, kinds: &[&Schema], table: &Table, path: &SettingPath) {
        let names = || {
            kinds
                .iter()
                .flat_map(|kind| keys(kind))
                .chain(choices(schema))
        };
        let one_of = |names: Vec<String>| format!("choose one of {}", names.join(", "));
        let known = |key: &str| kinds.iter().find_map(|kind| kind["properties"].get(key));
        if table.len() != 1 {
            let problem = match table.is_empty() {
                true => format!("nothing is chosen: {}", one_of(names().collect())),
                false => {
                    let chosen: Vec<String> = table.keys().map(|key| format!("`{key}`")).collect();
                    format!(
                        "{} stand here, but only one may: {}",
                        chosen.join(" and "),
                        one_of(names().collect())
                    )
                }
            };
            self.add(path.clone(), Problem::Misfit(problem));
        }
        for (key, value) in table {
            match known(key) {
                Some(content) => self.value(content, value, &path.key(key)),
                None if table.len() == 1 => {
                    let known: Vec<String> = kinds.iter().flat_map(|kind| keys(kind)).collect();
                    let near = suggestions::nearest(key, &known);
                    let meant = near.map(|near| path.key(near).keys()).into_iter().collect();
                    self.add(path.key(key), Problem::Unknown { meant, known });
                }
                None => {}
            }
        }
    }

    fn unknown(&mut self, schema: &Schema, path: SettingPath, key: &str) {
        let known = keys(schema);
        let meant = self.suggestions.for_unknown(&path, key, &known);
        self.add(path, Problem::Unknown { meant, known });
    }
}

fn keys(schema: &Schema) -> Vec<String> {
    let members = schema.get("properties").and_then(Schema::as_object);
    members
        .into_iter()
        .flatten()
        .map(|(key, _)| key.clone())
        .collect()
}
