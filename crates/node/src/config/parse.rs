use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::setting_path::{PathStep, SettingPath};

pub(super) struct Unreadable {
    pub(super) path: SettingPath,
    pub(super) reason: String,
}

/// # Errors
///
/// The first setting that does not fit its type. For a setting of a flattened struct, serde names only the table, so
/// each setting of that table is then read alone.
pub(super) fn parse<T: DeserializeOwned>(tree: &Value) -> Result<T, Unreadable> {
    let mut error = match read(tree.clone()) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    while let Some(nearer) = error_of_member::<T>(tree, &error.path) {
        error = nearer;
    }
    Err(error)
}

fn read<T: DeserializeOwned>(tree: Value) -> Result<T, Unreadable> {
    serde_path_to_error::deserialize(tree).map_err(|error| Unreadable {
        path: SettingPath::of_error(error.path()),
        reason: error.inner().message().to_owned(),
    })
}

/// `None` if the table itself does not fit.
fn error_of_member<T: DeserializeOwned>(tree: &Value, path: &SettingPath) -> Option<Unreadable> {
    let table = at(&mut tree.clone(), path)?.as_table()?.clone();
    let only = |members: Table| {
        let mut tree = tree.clone();
        *at(&mut tree, path)? = Value::Table(members);
        read::<T>(tree)
            .err()
            .filter(|error| path.is_within(&error.path))
    };
    if only(Table::new()).is_some() {
        return None;
    }
    table.into_iter().find_map(|(key, value)| {
        let path = path.key(&key);
        let reason = only(Table::from_iter([(key, value)]))?.reason;
        Some(Unreadable { path, reason })
    })
}

fn at<'a>(tree: &'a mut Value, path: &SettingPath) -> Option<&'a mut Value> {
    path.0.iter().try_fold(tree, |at, step| match step {
        PathStep::Key(key) => at.get_mut(key.as_str()),
        PathStep::Index(index) => at.get_mut(index),
    })
}
