//! What is to be used.

use serde_json::{Map, Value};
use shoal_protocol::RawJson;

use crate::config::Hint;

/// A kind of thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// A tool, by the name that clients use.
    Tool,
    /// A prompt, by the name that clients use.
    Prompt,
    /// A resource, by its URI.
    Resource,
    /// A resource template, as it is written.
    ResourceTemplate,
    /// A method of an extension.
    Method,
}

impl TargetKind {
    /// How expressions call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::ResourceTemplate => "resource_template",
            Self::Method => "method",
        }
    }
}

/// What is to be used.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// What it is.
    pub kind: TargetKind,
    /// Its name.
    pub name: &'a str,
    /// The pool that has it.
    pub pool: &'a str,
    /// It as it is listed, if it is; its `annotations` are read.
    pub item: Option<&'a RawJson>,
    /// The number of the catalog that it is from. Decisions are kept for one catalog: in another, the same name may be of
    /// another pool, or say something else of itself.
    pub catalog: u64,
}

/// What an item says of itself.
#[derive(Debug, Default)]
pub(crate) struct Annotations {
    pub(crate) all: Map<String, Value>,
}

impl Annotations {
    pub(crate) fn of(target: &Target<'_>) -> Self {
        let annotations = target.item.and_then(|item| item.member("annotations"));
        let all = annotations.and_then(|it| it.read().ok());
        Self {
            all: all.unwrap_or_default(),
        }
    }

    fn says(&self, hint: &str, unsaid: bool) -> bool {
        self.all
            .get(hint)
            .and_then(Value::as_bool)
            .unwrap_or(unsaid)
    }

    pub(crate) fn read_only(&self) -> bool {
        self.says("readOnlyHint", false)
    }

    pub(crate) fn destructive(&self) -> bool {
        !self.read_only() && self.says("destructiveHint", true)
    }

    pub(crate) fn idempotent(&self) -> bool {
        self.read_only() || self.says("idempotentHint", false)
    }

    pub(crate) fn open_world(&self) -> bool {
        self.says("openWorldHint", true)
    }

    pub(crate) fn has(&self, hint: Hint) -> bool {
        match hint {
            Hint::ReadOnly => self.read_only(),
            Hint::Writes => !self.read_only(),
            Hint::Destructive => self.destructive(),
            Hint::NotDestructive => !self.destructive(),
            Hint::Idempotent => self.idempotent(),
            Hint::OpenWorld => self.open_world(),
            Hint::ClosedWorld => !self.open_world(),
        }
    }
}
