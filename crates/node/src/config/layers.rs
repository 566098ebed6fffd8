//! Lays the sources of configuration over one another, and remembers which one set what.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use toml::{Table, Value};

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// The program itself, by its author.
    Program,
    /// The configuration file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// A word on the command line.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the defaults"),
            Self::Program => f.write_str("the program"),
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Variable(name) => write!(f, "the environment variable {name}"),
            Self::Flag(flag) => write!(f, "the command line ({flag})"),
        }
    }
}

/// The settings that somebody made, later sources over earlier ones.
///
/// Tables are merged key by key; everything else, arrays included, is replaced as a whole.
#[derive(Debug, Default)]
pub(super) struct Layers {
    merged: Table,
    origin: BTreeMap<Vec<String>, Source>,
}

impl Layers {
    /// Lays a whole table on top.
    pub(super) fn apply(&mut self, table: Table, source: &Source) {
        for (key, value) in table {
            self.set(&[key], value, source);
        }
    }

    /// Lays one setting on top.
    ///
    /// # Panics
    /// When `path` is empty.
    pub(super) fn set(&mut self, path: &[String], value: Value, source: &Source) {
        if let Value::Table(table) = value {
            // An empty table still says that it is there.
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
        // Whatever stood below is gone with it.
        self.origin.retain(|key, _| !key.starts_with(path));
        self.origin.insert(path.to_vec(), source.clone());
    }

    /// What all layers together say.
    pub(super) fn merged(&self) -> &Table {
        &self.merged
    }

    /// Who set the setting at `path`, or the nearest one that says something of it.
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

    /// The sources that set anything, for the log.
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

    /// The table at `path`; whatever stood in the way is replaced by it.
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
