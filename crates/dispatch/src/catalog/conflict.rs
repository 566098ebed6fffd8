//! Conflicts between pools, and defects of single items.

use serde::Serialize;

/// A conflict: two pools offer the same item. The pool that had the item first keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// The kind of the item.
    pub kind: ItemKind,
    /// The item's name or URI, as clients see it.
    pub name: String,
    /// The pool whose item is served.
    pub kept: String,
    /// The pool whose item is hidden.
    pub hidden: String,
}

/// A kind of item that a pool offers.
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

/// An item that is hidden, or a tool that is served without part of its description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Degraded {
    /// The item's name as clients see it, with unsafe characters escaped.
    pub tool: String,
    /// The item's pool.
    pub pool: String,
    /// The defect and its effect.
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
