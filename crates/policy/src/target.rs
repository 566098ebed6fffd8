use serde_json::{Map, Value};
use shoal_protocol::RawJson;

use crate::config::Hint;

/// The kinds of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// A tool, by the name that clients see.
    Tool,
    /// A prompt, by the name that clients see.
    Prompt,
    /// A resource, by its URI.
    Resource,
    /// A resource template, unexpanded.
    ResourceTemplate,
    /// An extension's method.
    Method,
}

impl TargetKind {
    /// Returns the name in expressions.
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

/// A target that a caller wants to use.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The kind.
    pub kind: TargetKind,
    /// The name.
    pub name: &'a str,
    /// The pool that offers the target.
    pub pool: &'a str,
    /// The listed target, from which `annotations` are read.
    pub item: Option<&'a RawJson>,
    /// The catalog that lists the target. Decisions are cached for each catalog, because another catalog may
    /// have another pool or other annotations under the same name.
    pub catalog: u64,
}

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
