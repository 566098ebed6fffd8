use serde::Serialize;

/// An item that two pools offer. One of them keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// The kind of the item.
    pub kind: ItemKind,
    /// The name or URI that clients see.
    pub name: String,
    /// The pool that serves the item.
    pub kept: String,
    /// The pool whose item is hidden.
    pub hidden: String,
}

/// A kind of item.
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

/// A hidden item, or a tool without part of its description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Degraded {
    /// The name that clients see, with unsafe characters escaped.
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
