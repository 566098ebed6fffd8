use std::sync::Arc;

use shoal_protocol::task::TaskSupport;
use shoal_protocol::{InvalidParamHeader, ParamHeaders, RawJson, RawObject};

use super::checker::Checker;
use super::schema::{self, SchemaError};
use super::schema_repair::{Repaired, Schema};

const ANY_OBJECT: RawJson = RawJson::from_static(r#"{"type":"object"}"#);

#[derive(Debug)]
pub(crate) struct CatalogTool {
    pub(crate) name: Arc<str>,
    pub(crate) raw: RawJson,
    pub(crate) listed: Option<RawJson>,
    /// Whether clients see a schema that takes any object, because the tool's own describes none.
    pub(crate) takes_anything: bool,
    /// Changes to the schema. Without them, clients would refuse the whole list.
    pub(crate) repairs: Vec<String>,
    pub(crate) hints: Hints,
    pub(crate) task_support: Option<TaskSupport>,
    /// A tool with an unusable schema stays callable without checks.
    pub(crate) checker: Result<Checker, SchemaError>,
    /// Headers that mirror arguments. Modern lists omit a tool with a broken annotation.
    pub(crate) headers: Result<ParamHeaders, InvalidParamHeader>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    pub(crate) read_only: bool,
    pub(crate) idempotent: bool,
}

impl Hints {
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

impl CatalogTool {
    pub(crate) fn read(raw: &RawJson) -> Option<Self> {
        let object = RawObject::of(raw)?;
        let name = object.get("name")?.string()?.into();
        let given = object.get("inputSchema");
        let task_support = TaskSupport::said(&object);
        let (fit, schema) = match given {
            Some(given) => (Schema::of(&given), given),
            None => (Schema::Unfit, RawJson::from_static("{}")),
        };
        let takes_anything = fit == Schema::Unfit;
        let (schema, listed_schema, repairs) = match fit {
            Schema::Fits => (schema, None, Vec::new()),
            Schema::Repaired(Repaired { schema, changes }) => {
                (schema.clone(), Some(schema), changes)
            }
            Schema::Unfit => (schema, Some(ANY_OBJECT), Vec::new()),
        };
        let (checker, headers) = match schema::read(&schema) {
            Ok(value) => (Checker::of(&value), ParamHeaders::of_schema(&value)),
            Err(error) => (Err(error), Ok(ParamHeaders::default())),
        };
        Some(Self {
            name,
            raw: raw.clone(),
            listed: listed(&object, listed_schema, task_support),
            takes_anything,
            repairs,
            hints: Hints::of(&object),
            task_support,
            checker,
            headers,
        })
    }
}

/// `None` if neither the repaired schema nor task support changes the tool.
fn listed(
    object: &RawObject,
    schema: Option<RawJson>,
    task_support: Option<TaskSupport>,
) -> Option<RawJson> {
    let execution = object.get("execution");
    let execution = execution.as_ref().and_then(RawObject::of);
    let noted = task_support.filter(|_| {
        let said = execution.as_ref().and_then(|it| it.get("taskSupport"));
        said.is_none_or(|said| said.string().is_none())
    });
    if schema.is_none() && noted.is_none() {
        return None;
    }
    let mut listed = object.clone();
    if let Some(schema) = schema {
        listed.set("inputSchema", schema);
    }
    if let Some(support) = noted {
        let mut execution = execution.unwrap_or_default();
        execution.set("taskSupport", RawJson::of(support.as_str()));
        listed.set("execution", execution.to_json());
    }
    Some(listed.to_json())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shoal_protocol::RawJson;

    use super::CatalogTool;

    fn listed(tool: &Value) -> Option<Value> {
        let tool = CatalogTool::read(&RawJson::of(tool)).unwrap();
        tool.listed.map(|listed| listed.read().unwrap())
    }

    #[test]
    fn what_a_tool_notes_of_tasks_is_listed_where_clients_look() {
        let schema = json!({"type":"object"});
        let noted =
            json!({"name":"a","inputSchema":schema,"_meta":{"shoal/taskSupport":"optional"}});
        let mut expected = noted.clone();
        expected["execution"] = json!({"taskSupport":"optional"});
        assert_eq!(listed(&noted), Some(expected));
        let said = json!({"name":"a","inputSchema":schema,"execution":{"taskSupport":"required"}});
        assert_eq!(listed(&said), None);
        assert_eq!(listed(&json!({"name":"a","inputSchema":schema})), None);
    }
}
