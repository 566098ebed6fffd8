//! `[policy]`: the configured rules.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use shoal_ports::{Period, settings};

settings! {
    /// Who may use which tools, prompts and resources ([policy](policy.md)). Without a rule everybody may use everything; as
    /// soon as there is one, what no rule allows is denied.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct PolicyConfig {
        /// The rules, in any order: one that denies wins over the others, and one that asks over those that allow.
        pub rules: Vec<Rule> = Vec::new(),
        /// A TOML file with more `[[rules]]`, or with `rules = []` for none. It is read again when it changes; one that cannot be used is
        /// reported, and the rules before it stay. All edges and session nodes must have the same.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub file: Option<PathBuf> = None,
        /// How often to look whether the file has changed.
        pub reread: Period = Period::seconds(5),
    }
}

/// The file that `policy.file` names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table with [[rules]]")]
pub struct RulesFile {
    /// The rules. `None` if the file has no `rules` at all, for example because it was cut off.
    pub rules: Option<Vec<Rule>>,
}

/// A rule. It applies where everything holds that it says; in a list, one entry is enough.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with name and effect")]
pub struct Rule {
    /// What logs and `shoal policy test` call it.
    pub name: String,
    /// What happens where it applies.
    pub effect: Effect,
    /// A condition in CEL, such as `claims.department == "finance"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Principals. `*` stands for any characters, here and in the lists below.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub principals: Vec<String>,
    /// Scopes, of which the caller must have one.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub scopes: Vec<String>,
    /// Pools that offer it.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub pools: Vec<String>,
    /// Tools, by the names that clients use. A rule that names tools, prompts, resources or methods applies to nothing else.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub tools: Vec<String>,
    /// Prompts, by the names that clients use.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub prompts: Vec<String>,
    /// URIs of resources, and resource templates as they are written.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub resources: Vec<String>,
    /// Methods of extensions, such as `skills/*`. Only a rule that names them allows any.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub methods: Vec<String>,
    /// What a tool says of itself, all of it. The rule applies to tools alone then.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub hints: Vec<Hint>,
}

/// Refuses an empty list, which would look like "no caller", but a rule without the list applies to
/// all.
fn not_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = Vec::deserialize(deserializer)?;
    if list.is_empty() {
        return Err(D::Error::custom(
            "an empty list names nothing: leave it out for a rule that does not look at it, or leave the rule out",
        ));
    }
    Ok(list)
}

/// What happens where a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It may be used.
    Allow,
    /// It may not, and is not listed.
    Deny,
    /// A tool may be called once the person agrees, who is asked before each call. It applies to nothing but tools.
    Ask,
}

/// An annotation of a tool. What a tool does not say is taken as MCP takes it: not read-only, destructive, not idempotent,
/// open to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hint {
    /// It changes nothing.
    ReadOnly,
    /// It may change something.
    Writes,
    /// What it changes may be lost.
    Destructive,
    /// What it changes is not lost.
    NotDestructive,
    /// A second call of the same kind changes nothing more.
    Idempotent,
    /// It reaches beyond what its server keeps.
    OpenWorld,
    /// It does not.
    ClosedWorld,
}
