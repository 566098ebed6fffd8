//! One tool of a backend, read and compiled once.

use std::sync::Arc;

use shoal_protocol::task::TaskSupport;
use shoal_protocol::{InvalidParamHeader, ParamHeaders, RawJson, RawObject};

use super::checker::Checker;
use super::fitting;
use super::schema::{self, SchemaError};

/// A tool as its backend described it, with what Shoal needs to know of it.
#[derive(Debug)]
pub(crate) struct Tool {
    /// The backend's name for it.
    pub(crate) name: Arc<str>,
    /// The `Tool` object.
    pub(crate) raw: RawJson,
    /// How it is listed, where clients would refuse the whole list for what it says of its arguments.
    pub(crate) listed: Option<RawJson>,
    pub(crate) hints: Hints,
    pub(crate) task_support: TaskSupport,
    /// Checks arguments; a tool whose schema cannot be used stays callable, unchecked.
    pub(crate) checker: Result<Checker, SchemaError>,
    /// Arguments that are mirrored into headers; a tool with a broken annotation is left out of the
    /// lists of modern clients, which would have to drop it.
    pub(crate) headers: Result<ParamHeaders, InvalidParamHeader>,
}

/// The annotations that say whether a call may be repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    pub(crate) read_only: bool,
    pub(crate) idempotent: bool,
}

impl Hints {
    /// Whether an execution after a first one changes nothing.
    pub(crate) const fn safe_to_repeat(self) -> bool {
        self.read_only || self.idempotent
    }

    fn of(tool: &RawObject) -> Self {
        let annotations = tool.get("annotations").and_then(|a| RawObject::of(&a));
        let says = |hint: &str| {
            annotations
                .as_ref()
                .and_then(|annotations| annotations.get(hint))
                .is_some_and(|value| value.as_str() == "true")
        };
        Self {
            read_only: says("readOnlyHint"),
            idempotent: says("idempotentHint"),
        }
    }
}

impl Tool {
    /// Reads a `Tool` object; `None` when it has no name.
    pub(crate) fn read(raw: &RawJson) -> Option<Self> {
        let object = RawObject::of(raw)?;
        let name = object.get("name")?.string()?.into();
        let given = object.get("inputSchema");
        let takes_an_object = given.as_ref().is_some_and(fitting::is_schema_of_object);
        let listed = (!takes_an_object).then(|| {
            let mut listed = object.clone();
            let any = RawJson::from_static(r#"{"type":"object"}"#);
            listed.set("inputSchema", any);
            listed.to_json()
        });
        let schema = given.unwrap_or(RawJson::from_static("{}"));
        let (checker, headers) = match schema::read(&schema) {
            Ok(value) => (Checker::of(&value), ParamHeaders::of_schema(&value)),
            // Nothing of a schema beyond the limits is read.
            Err(error) => (Err(error), Ok(ParamHeaders::default())),
        };
        Some(Self {
            name,
            raw: raw.clone(),
            listed,
            hints: Hints::of(&object),
            task_support: TaskSupport::of(&object),
            checker,
            headers,
        })
    }
}
