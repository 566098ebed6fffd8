//! What two pools both claim, and what is wrong with single tools.

use serde::Serialize;

/// Two pools offer the same thing. The pool that had it first keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// What kind of thing.
    pub kind: ItemKind,
    /// Its name or URI, as clients would see it.
    pub name: String,
    /// The pool whose item is served.
    pub kept: String,
    /// The pool whose item is hidden.
    pub hidden: String,
}

/// What a pool can offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A resource template.
    ResourceTemplate,
}

/// A tool that is served with a part of its description unused, or something that is not served at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Degraded {
    /// Its name, as clients see it or would see it; escaped if nobody should.
    pub tool: String,
    /// Its pool.
    pub pool: String,
    /// What is wrong, and what that means.
    pub reason: String,
}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            kind,
            name,
            kept,
            hidden,
        } = self;
        write!(
            f,
            "{kind} {name:?} of pool {hidden} is hidden by that of pool {kept}"
        )
    }
}

impl std::fmt::Display for ItemKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::ResourceTemplate => "resource template",
        })
    }
}
