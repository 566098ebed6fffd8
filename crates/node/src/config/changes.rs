use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use shoal_ports::REDACTED;
use toml::{Table, Value};

use super::setting_path::SettingPath;
use super::{Backend, Loaded, Pool, Settings};

/// A reload applies these settings at once.
const AT_ONCE: [&str; 2] = ["pools", "quotas"];

/// The explicitly set values, secrets included.
#[derive(Clone, Default)]
pub struct Given(pub(super) Table);

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolChange {
    /// Whether the offer changed, for example its rules, prefix or durability.
    pub(crate) offer: bool,
    pub(crate) limits: bool,
    pub(crate) backend: bool,
}

/// `None` if both pools are equal.
pub(crate) fn pool_change(now: &Pool, next: &Pool) -> Option<PoolChange> {
    if now == next {
        return None;
    }
    Some(PoolChange {
        offer: now.offer != next.offer,
        limits: now.limits != next.limits,
        backend: now.backend != next.backend || makes_other_tools(now, next),
    })
}

/// Whether the backend must make its tools again, because an OpenAPI backend makes only the chosen tools.
fn makes_other_tools(now: &Pool, next: &Pool) -> bool {
    let (before, after) = (&now.offer.tools, &next.offer.tools);
    let same = before.allow == after.allow && before.deny == after.deny;
    matches!(next.backend, Backend::OpenApi(_)) && !same
}

pub(crate) fn changed_pools<'a>(
    now: &'a BTreeMap<String, Pool>,
    next: &'a BTreeMap<String, Pool>,
) -> BTreeSet<&'a str> {
    let names = now.keys().chain(next.keys()).map(String::as_str);
    names
        .filter(|name| now.get(*name) != next.get(*name))
        .collect()
}

/// Returns dotted names, without those of [`AT_ONCE`].
pub(crate) fn at_next_start(now: &Loaded, next: &Loaded) -> Vec<String> {
    let (shown_now, shown_next) = (shown(&now.settings), shown(&next.settings));
    let mut differing = BTreeSet::new();
    differences(&mut Vec::new(), &shown_now, &shown_next, &mut differing);
    // The shown settings hide all secrets alike, so compare the given values of secrets.
    let mut given = BTreeSet::new();
    differences(&mut Vec::new(), &now.given.0, &next.given.0, &mut given);
    let hidden = |path: &Vec<String>| [&shown_now, &shown_next].iter().any(|t| hides(t, path));
    differing.extend(given.into_iter().filter(hidden));
    let others = differing
        .into_iter()
        .filter(|path| !AT_ONCE.contains(&path[0].as_str()));
    others
        .map(|path| SettingPath::of_keys(&path).to_string())
        .collect()
}

fn shown(settings: &Settings) -> Table {
    Table::try_from(settings).unwrap_or_default()
}

fn differences(
    at: &mut Vec<String>,
    one: &Table,
    other: &Table,
    differing: &mut BTreeSet<Vec<String>>,
) {
    let none = Table::new();
    for key in one.keys().chain(other.keys()) {
        let (here, there) = (one.get(key), other.get(key));
        if here == there {
            continue;
        }
        at.push(key.clone());
        match (here, there) {
            (Some(Value::Table(here)), Some(Value::Table(there))) => {
                differences(at, here, there, differing);
            }
            (Some(Value::Table(table)), None) | (None, Some(Value::Table(table))) => {
                differences(at, table, &none, differing);
            }
            _ => {
                differing.insert(at.clone());
            }
        }
        at.pop();
    }
}

/// Includes the nearest ancestor in the table.
fn hides(table: &Table, path: &[String]) -> bool {
    let mut shown = None;
    let mut table = Some(table);
    for key in path {
        let Some(value) = table.and_then(|table| table.get(key)) else {
            break;
        };
        table = value.as_table();
        shown = Some(value);
    }
    shown.is_some_and(|value| value.to_string().contains(REDACTED))
}
