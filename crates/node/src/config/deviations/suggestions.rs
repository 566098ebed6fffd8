use serde_json::Value as Schema;

use super::super::reference::{ANY, collect};
use super::super::setting_path::SettingPath;

const MOST: usize = 3;

/// Names in other programs, and Shoal's settings for them.
const ELSEWHERE: [(&str, &str); 12] = [
    ("port", "server.listen"),
    ("host", "server.listen"),
    ("server.port", "server.listen"),
    ("server.host", "server.listen"),
    ("server.bind", "server.listen"),
    ("server.address", "server.listen"),
    ("redis.url", "node.store"),
    ("redis.host", "node.store"),
    ("redis.address", "node.store"),
    ("log", "logging"),
    ("tls", "server.tls"),
    ("servers", "pools"),
];

/// The keys of every setting.
pub(super) struct Suggestions(Vec<Vec<String>>);

impl Suggestions {
    pub(super) fn of(schema: &Schema) -> Self {
        let mut all = Vec::new();
        collect(schema, &mut Vec::new(), &mut all);
        Self(all)
    }

    /// `key` is the last part of `path`. `known` are the settings of the same table.
    pub(super) fn for_unknown(
        &self,
        path: &SettingPath,
        key: &str,
        known: &[String],
    ) -> Vec<Vec<String>> {
        let keys = path.keys();
        let Some((_, parents)) = keys.split_last() else {
            return Vec::new();
        };
        let dotted = keys.join(".");
        if let Some((_, here)) = ELSEWHERE.iter().find(|(name, _)| *name == dotted) {
            return vec![here.split('.').map(str::to_owned).collect()];
        }
        let in_list = keys.len() < path.0.len();
        if let Some(near) = nearest(key, known) {
            let near = near.to_owned();
            return match in_list {
                true => vec![vec![near]],
                false => vec![[parents, &[near]].concat()],
            };
        }
        if in_list {
            return Vec::new();
        }
        let same = self
            .0
            .iter()
            .filter(|setting| setting.last().is_some_and(|last| plain(last) == plain(key)));
        let same: Vec<Vec<String>> = same.map(|setting| as_in(setting, &keys)).collect();
        // Suggest no setting whose path still has a placeholder, such as a setting of an unknown pool.
        let same: Vec<Vec<String>> = same
            .into_iter()
            .filter(|it| !it.iter().any(|key| key == ANY))
            .collect();
        // Prefer settings below this table.
        let below = same.iter().filter(|setting| setting.starts_with(parents));
        let below: Vec<Vec<String>> = below.cloned().collect();
        let mut meant = if below.is_empty() { same } else { below };
        meant.truncate(MOST);
        meant
    }
}

/// `keys` has the names that operators chose.
fn as_in(setting: &[String], keys: &[String]) -> Vec<String> {
    let mut same = true;
    let parts = setting.iter().enumerate().map(|(at, part)| {
        let there = keys.get(at);
        let chosen = there.filter(|_| same && part == ANY);
        same &= chosen.is_some() || there == Some(part);
        chosen.unwrap_or(part).clone()
    });
    parts.collect()
}

pub(super) fn nearest<'a>(key: &str, known: &'a [String]) -> Option<&'a str> {
    let key = plain(key);
    let near = known.iter().map(|name| {
        let name_plain = plain(name);
        let distance = strsim::damerau_levenshtein(&key, &name_plain);
        // A common beginning matches plurals and abbreviations.
        let begins = key.len() > 3
            && name_plain.len() > 3
            && (name_plain.starts_with(&key) || key.starts_with(&name_plain));
        (if begins { distance.min(1) } else { distance }, name)
    });
    let (distance, name) = near.min_by_key(|(distance, _)| *distance)?;
    let enough = (key.chars().count() / 3).max(1);
    (distance <= enough).then_some(name.as_str())
}

/// `allowedHosts`, `allowed-hosts` and `allowed_hosts` all become `allowedhosts`.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}
