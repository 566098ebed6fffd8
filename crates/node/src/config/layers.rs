use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::document::{SettingPlace, SettingPlaces};
use super::setting_path::{PathStep, SettingPath};

/// The source of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A default.
    Default,
    /// The program's own setting.
    Program,
    /// The configuration file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// A flag on the command line.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the defaults"),
            Self::Program => f.write_str("the program"),
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Variable(name) => write!(f, "the variable {name}"),
            Self::Flag(flag) => write!(f, "the command line ({flag})"),
        }
    }
}

/// Explicit settings. Later sources override earlier ones. Tables are merged key by key. All other values, arrays
/// included, are replaced.
#[derive(Debug, Default)]
pub(super) struct Layers {
    merged: Table,
    origin: BTreeMap<Vec<String>, Source>,
    places: SettingPlaces,
}

impl Layers {
    pub(super) fn apply_file(&mut self, table: Table, places: SettingPlaces, file: &Path) {
        let source = Source::File(file.to_owned());
        for (key, value) in table {
            self.set(&[key], value, &source);
        }
        self.places = places;
    }

    /// # Panics
    ///
    /// If `path` is empty.
    pub(super) fn set(&mut self, path: &[String], value: Value, source: &Source) {
        if let Value::Table(table) = value {
            self.descend(path, source);
            for (key, value) in table {
                let mut path = path.to_vec();
                path.push(key);
                self.set(&path, value, source);
            }
            return;
        }
        let (last, parents) = path.split_last().expect("a setting has a name");
        self.descend(parents, source).insert(last.clone(), value);
        self.origin.retain(|key, _| !key.starts_with(path));
        self.origin.insert(path.to_vec(), source.clone());
    }

    pub(super) fn merged(&self) -> &Table {
        &self.merged
    }

    /// Returns the source of the nearest set ancestor if `path` is not set.
    pub(super) fn source_of(&self, path: &[String]) -> Source {
        let mut at = path;
        loop {
            if let Some(source) = self.origin.get(at) {
                return source.clone();
            }
            match at.split_last() {
                Some((_, parents)) => at = parents,
                None => return Source::Default,
            }
        }
    }

    /// Takes the nearest set ancestor if `path` is not set by `origin`.
    pub(super) fn place_of(&self, path: &SettingPath, origin: &Source) -> Option<SettingPlace> {
        match origin {
            Source::File(_) => self.places.nearest(path),
            _ => None,
        }
    }

    pub(super) fn value_at(&self, path: &SettingPath) -> Option<&Value> {
        let (first, rest) = path.0.split_first()?;
        let PathStep::Key(key) = first else {
            return None;
        };
        rest.iter()
            .try_fold(self.merged.get(key)?, |value, step| match step {
                PathStep::Key(key) => value.get(key),
                PathStep::Index(index) => value.get(*index),
            })
    }

    pub(super) fn sources(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for source in self.origin.values() {
            let name = source.to_string();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Replaces any value on the way that is not a table.
    fn descend(&mut self, path: &[String], source: &Source) -> &mut Table {
        let mut table = &mut self.merged;
        for (depth, key) in path.iter().enumerate() {
            let entry = table
                .entry(key.clone())
                .or_insert_with(|| Value::Table(Table::new()));
            let here = path[..=depth].to_vec();
            if entry.is_table() {
                self.origin.entry(here).or_insert_with(|| source.clone());
            } else {
                *entry = Value::Table(Table::new());
                self.origin.insert(here, source.clone());
            }
            table = entry
                .as_table_mut()
                .expect("anything else was replaced above");
        }
        table
    }
}
