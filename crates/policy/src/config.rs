//! `[policy]`: the configured rules.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use shoal_ports::{Period, settings};

settings! {
    /// Access to tools, prompts and resources ([policy](policy.md)).
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct PolicyConfig {
        /// Rules. Deny wins over ask, and ask over allow.
        pub rules: Vec<Rule> = Vec::new(),
        /// TOML file with more `[[rules]]`, equal on all edges and session nodes, read again on change. Shoal ignores
        /// unusable changes.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub file: Option<PathBuf> = None,
        /// How often Shoal checks the file for changes.
        pub reread: Period = Period::seconds(5),
    }
}

/// The file that `policy.file` names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table with [[rules]]")]
pub struct RulesFile {
    /// The rules; `None` if the file has no `rules`, for example because it was cut off.
    pub rules: Option<Vec<Rule>>,
}

/// A rule applies when all its conditions match. A list matches when an entry does.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with name and effect")]
pub struct Rule {
    /// Name in logs and `shoal policy test`.
    pub name: String,
    /// Effect of the rule.
    pub effect: Effect,
    /// CEL condition that must be true, such as `claims.department == "finance"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Callers, by their principal.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub principals: Vec<String>,
    /// Scopes, of which the caller needs one.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub scopes: Vec<String>,
    /// Pools that offer the tool, prompt or resource.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub pools: Vec<String>,
    /// Tools, by the names that clients see.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub tools: Vec<String>,
    /// Prompts, by the names that clients see.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub prompts: Vec<String>,
    /// URIs of resources; templates as the server lists them.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub resources: Vec<String>,
    /// Methods of extensions, such as `skills/*`. Only a rule with methods can allow them.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub methods: Vec<String>,
    /// [Hints](policy.md#rules), of which the tool needs all.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "not_empty"
    )]
    pub hints: Vec<Hint>,
}

/// Refuses an empty list: it reads like "none", although a rule without the list applies to all.
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

/// Effect of a rule that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Callers may use what matches.
    Allow,
    /// Shoal hides and refuses what matches.
    Deny,
    /// Shoal asks the user before each call of a tool.
    Ask,
}

/// An annotation of a tool. Missing annotations have MCP's defaults: not read-only, destructive, not idempotent,
/// open to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hint {
    /// The tool changes nothing.
    ReadOnly,
    /// The tool may change something.
    Writes,
    /// The tool may destroy data.
    Destructive,
    /// The tool destroys no data.
    NotDestructive,
    /// A repeated call has no further effect.
    Idempotent,
    /// The tool reaches systems outside of its server.
    OpenWorld,
    /// The tool reaches only its own server.
    ClosedWorld,
}
