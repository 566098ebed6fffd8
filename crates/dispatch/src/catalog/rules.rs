//! An operator's changes to a pool's offer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{matches_pattern, settings};
use shoal_protocol::{RawJson, RawObject};

settings! {
    /// Which tools of a pool are offered, and how. Tools are named as their backend names them.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct ToolRules {
        /// Offered names, such as `["read_*"]`; if empty, all. Shoal hides and refuses other names.
        pub allow: Vec<String> = Vec::new(),
        /// Names that Shoal hides and refuses despite `allow`.
        pub deny: Vec<String> = Vec::new(),
        /// New names, by the backend's names: `{ read_file = "read" }`. `prefix` comes before them. Here, and in
        /// `describe` and `hints`, `*` is an ordinary character.
        pub rename: BTreeMap<String, String> = BTreeMap::new(),
        /// Your descriptions instead of the backend's, by the backend's names.
        pub describe: BTreeMap<String, String> = BTreeMap::new(),
        /// Your annotations instead of the backend's, in tables as below. Clients see them, and `durability` uses them.
        pub hints: BTreeMap<String, ToolHints> = BTreeMap::new(),
    }
}

settings! {
    /// Which prompts of a pool are offered, and how. Prompts are named as their backend names them.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct PromptRules {
        /// Offered names, such as `["read_*"]`; if empty, all. Shoal hides and refuses other names.
        pub allow: Vec<String> = Vec::new(),
        /// Names that Shoal hides and refuses despite `allow`.
        pub deny: Vec<String> = Vec::new(),
        /// New names, by the backend's names: `{ read_file = "read" }`. `prefix` comes before them. Here, and in
        /// `describe` and `hints`, `*` is an ordinary character.
        pub rename: BTreeMap<String, String> = BTreeMap::new(),
        /// Your descriptions instead of the backend's, by the backend's names.
        pub describe: BTreeMap<String, String> = BTreeMap::new(),
    }
}

settings! {
    /// Which resources of a pool are offered.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct ResourceRules {
        /// Offered URIs; if empty, all. Templates, as the server lists them (`file:///{path}`), include their
        /// resources. Shoal hides and refuses other URIs.
        pub allow: Vec<String> = Vec::new(),
        /// URIs that Shoal hides and refuses in [every spelling](backends.md#choose-what-a-server-offers), despite
        /// `allow`.
        pub deny: Vec<String> = Vec::new(),
    }
}

settings! {
    /// Which methods of the extensions that a pool's server declares are offered.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct MethodRules {
        /// Offered names, such as `["read_*"]`; if empty, all. Shoal hides and refuses other names.
        pub allow: Vec<String> = Vec::new(),
        /// Names that Shoal hides and refuses despite `allow`.
        pub deny: Vec<String> = Vec::new(),
    }
}

/// A tool's annotations. Unset hints keep the backend's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table of hints")]
pub struct ToolHints {
    /// `readOnlyHint`: changes no data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// `destructiveHint`: may destroy data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// `idempotentHint`: changes nothing more if repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// `openWorldHint`: reaches beyond its server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolRules {
    pub(super) fn admits(&self, name: &str) -> bool {
        admits(&self.allow, &self.deny, name)
    }

    pub(super) fn shown<'a>(&'a self, name: &'a str) -> &'a str {
        self.rename.get(name).map_or(name, String::as_str)
    }

    pub(crate) fn may_show(&self, name: &str) -> bool {
        let renamed = |(own, shown): (&String, &String)| shown == name && self.admits(own);
        self.rename.iter().any(renamed) || !self.rename.contains_key(name) && self.admits(name)
    }

    pub(super) fn applied(&self, name: &str, tool: RawJson) -> RawJson {
        let Some(hints) = self.hints.get(name) else {
            return described(&self.describe, name, tool);
        };
        let mut listed = RawObject::of(&tool).unwrap_or_default();
        let annotations = listed
            .get("annotations")
            .and_then(|own| RawObject::of(&own));
        let mut annotations = annotations.unwrap_or_default();
        for (hint, value) in [
            ("readOnlyHint", hints.read_only),
            ("destructiveHint", hints.destructive),
            ("idempotentHint", hints.idempotent),
            ("openWorldHint", hints.open_world),
        ] {
            if let Some(value) = value {
                annotations.set(hint, RawJson::of(&value));
            }
        }
        listed.set("annotations", annotations.to_json());
        described(&self.describe, name, listed.to_json())
    }

    pub(super) fn unused<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let patterns = self.allow.iter().chain(&self.deny);
        let exact = self.rename.keys().chain(self.describe.keys());
        unused(patterns.chain(exact).chain(self.hints.keys()), names)
    }
}

impl PromptRules {
    pub(super) fn admits(&self, name: &str) -> bool {
        admits(&self.allow, &self.deny, name)
    }

    pub(super) fn shown<'a>(&'a self, name: &'a str) -> &'a str {
        self.rename.get(name).map_or(name, String::as_str)
    }

    pub(crate) fn may_show(&self, name: &str) -> bool {
        let renamed = |(own, shown): (&String, &String)| shown == name && self.admits(own);
        self.rename.iter().any(renamed) || !self.rename.contains_key(name) && self.admits(name)
    }

    /// The `shown` name has no prefix. `None` if the rules hide any prompt, because the backend may
    /// read another spelling as a hidden one.
    pub(crate) fn unlisted<'a>(&'a self, shown: &'a str) -> Option<&'a str> {
        if !self.allow.is_empty() || !self.deny.is_empty() || shown.is_empty() {
            return None;
        }
        match self.rename.iter().find(|(_, name)| *name == shown) {
            Some((own, _)) => Some(own),
            None => (!self.rename.contains_key(shown)).then_some(shown),
        }
    }

    pub(super) fn applied(&self, name: &str, prompt: RawJson) -> RawJson {
        described(&self.describe, name, prompt)
    }

    pub(super) fn unused<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let patterns = self.allow.iter().chain(&self.deny);
        let exact = self.rename.keys().chain(self.describe.keys());
        unused(patterns.chain(exact), names)
    }
}

impl MethodRules {
    pub(super) fn admits(&self, method: &str) -> bool {
        admits(&self.allow, &self.deny, method)
    }
}

fn admits(allow: &[String], deny: &[String], name: &str) -> bool {
    let fits = |patterns: &[String]| patterns.iter().any(|it| matches_pattern(it, name));
    (allow.is_empty() || fits(allow)) && !fits(deny)
}

fn described(descriptions: &BTreeMap<String, String>, name: &str, item: RawJson) -> RawJson {
    let Some(description) = descriptions.get(name) else {
        return item;
    };
    let mut listed = RawObject::of(&item).unwrap_or_default();
    listed.set("description", RawJson::of(description));
    listed.to_json()
}

fn unused<'a>(
    said: impl Iterator<Item = &'a String>,
    names: &'a [&str],
) -> impl Iterator<Item = &'a str> {
    let is_unused = |said: &&String| !names.iter().any(|name| matches_pattern(said, name));
    said.filter(is_unused).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shoal_protocol::RawJson;

    use super::{ToolHints, ToolRules};

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn what_is_denied_is_not_allowed() {
        let rules = ToolRules {
            allow: words(&["read_*", "stat"]),
            deny: words(&["*_secret"]),
            ..ToolRules::default()
        };
        assert!(rules.admits("read_file") && rules.admits("stat"));
        assert!(!rules.admits("read_secret") && !rules.admits("write_file"));
        assert!(ToolRules::default().admits("anything"));
    }

    #[test]
    fn descriptions_and_hints_are_replaced_and_the_rest_stays() {
        let mut rules = ToolRules::default();
        rules.describe.insert("t".to_owned(), "Better.".to_owned());
        let hints = ToolHints {
            read_only: Some(true),
            destructive: Some(false),
            ..ToolHints::default()
        };
        rules.hints.insert("t".to_owned(), hints);
        let tool = json!({
            "name": "t", "description": "Worse.", "x": 1,
            "annotations": { "title": "T", "destructiveHint": true },
        });
        let listed: Value = rules.applied("t", RawJson::of(&tool)).read().unwrap();
        let expected = json!({
            "name": "t", "description": "Better.", "x": 1,
            "annotations": { "title": "T", "destructiveHint": false, "readOnlyHint": true },
        });
        assert_eq!(listed, expected);
        let other = RawJson::of(&json!({ "name": "other" }));
        assert_eq!(rules.applied("other", other.clone()), other);
    }

    #[test]
    fn what_fits_nothing_is_told() {
        let mut rules = ToolRules {
            deny: words(&["delte_*", "drop"]),
            ..ToolRules::default()
        };
        rules.rename.insert("gone".to_owned(), "g".to_owned());
        let unused: Vec<&str> = rules.unused(&["drop", "delete_all"]).collect();
        assert_eq!(unused, ["delte_*", "gone"]);
    }
}
