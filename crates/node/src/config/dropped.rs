//! Removes invalid settings, so that the rest can be checked.

use std::collections::{BTreeMap, BTreeSet};

use toml::Value;

use super::setting_path::{PathStep, SettingPath};

/// Paths refer to the original configuration, although removal shifts the items of a list.
#[derive(Default)]
pub(super) struct Dropped(BTreeMap<SettingPath, BTreeSet<usize>>);

impl Dropped {
    /// Returns whether there was a value.
    pub(super) fn drop(&mut self, tree: &mut Value, path: &SettingPath) -> bool {
        let Some((last, parents)) = path.0.split_last() else {
            return false;
        };
        let mut at = tree;
        let mut here = SettingPath::default();
        for step in parents {
            let next = match step {
                PathStep::Key(key) => at.get_mut(key.as_str()),
                PathStep::Index(index) => self.now(&here, *index).and_then(|now| at.get_mut(now)),
            };
            let Some(next) = next else {
                return false;
            };
            at = next;
            here.0.push(step.clone());
        }
        match (at, last) {
            (Value::Table(table), PathStep::Key(key)) => table.remove(key).is_some(),
            (Value::Array(items), PathStep::Index(index)) => match self.now(&here, *index) {
                Some(now) if now < items.len() => {
                    items.remove(now);
                    self.0.entry(here).or_default().insert(*index);
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }

    pub(super) fn took_from(&self, path: &SettingPath) -> bool {
        self.0.contains_key(path)
    }

    /// The path before any removal.
    pub(super) fn before(&self, path: &SettingPath) -> SettingPath {
        let mut before = SettingPath::default();
        for step in &path.0 {
            let step = match step {
                PathStep::Key(key) => PathStep::Key(key.clone()),
                PathStep::Index(now) => {
                    let gone = self.0.get(&before).into_iter().flatten();
                    PathStep::Index(gone.fold(*now, |at, gone| at + usize::from(*gone <= at)))
                }
            };
            before.0.push(step);
        }
        before
    }

    /// `None` if the item was removed.
    fn now(&self, list: &SettingPath, index: usize) -> Option<usize> {
        let Some(gone) = self.0.get(list) else {
            return Some(index);
        };
        (!gone.contains(&index)).then(|| index - gone.range(..index).count())
    }
}
