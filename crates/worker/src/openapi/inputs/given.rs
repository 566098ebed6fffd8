use std::collections::HashSet;

use serde_json::{Map, Value};
use shoal_ports::shown;

use super::{Inputs, ParameterInput};
use crate::openapi::schema::WIRE_NAME;

const LOGGED: usize = 5;
const LOGGED_NAME: usize = 64;

/// `None` if the schema allows other names.
pub(super) fn known_names(schema: &Value) -> Option<HashSet<String>> {
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return None;
    }
    let properties = schema.get("properties")?.as_object()?;
    let own = |property: &Value| Some(property.get(WIRE_NAME)?.as_str()?.to_owned());
    let own = properties.values().filter_map(own);
    Some(properties.keys().cloned().chain(own).collect())
}

impl Inputs {
    /// Renames parameters to the tool's names, and other arguments to the service's. A caller may
    /// use either name.
    pub(in crate::openapi) fn request_arguments(
        &self,
        arguments: Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let mut given = Map::new();
        for (name, value) in arguments {
            let name = match self.parameter_called(&name)? {
                Some(parameter) => parameter.name.clone(),
                None => name,
            };
            put(&mut given, name, value, "argument")?;
        }
        self.leave_out_unknown(&mut given);
        match &self.wire_names {
            Some(names) => names.restored(given),
            None => Ok(given),
        }
    }

    fn parameter_called(&self, name: &str) -> Result<Option<&ParameterInput>, String> {
        if self.has_argument(name) {
            return Ok(None);
        }
        let mut called = self.parameters.iter().filter(|it| it.writer.name == name);
        match (called.next(), called.next()) {
            (Some(one), Some(other)) => Err(format!(
                "the argument {name:?} may be {:?} or {:?}; use these names",
                one.name, other.name
            )),
            (parameter, _) => Ok(parameter),
        }
    }

    fn has_argument(&self, name: &str) -> bool {
        let body = self.body.as_ref().and_then(|body| body.argument.as_deref());
        body == Some(name) || self.parameters.iter().any(|it| it.name == name)
    }

    /// Removes unknown arguments, because some clients add their own.
    fn leave_out_unknown(&self, given: &mut Map<String, Value>) {
        let before = given.len();
        let mut names = Vec::new();
        given.retain(|name, _| {
            let is_known = self.is_known(name);
            if !is_known && names.len() < LOGGED {
                names.push(shown(name, LOGGED_NAME));
            }
            is_known
        });
        let left_out = before - given.len();
        if left_out > 0 {
            tracing::debug!(target: "shoal::openapi", left_out, ?names, "a call has arguments that the tool does not have");
        }
    }

    fn is_known(&self, name: &str) -> bool {
        self.known.as_ref().is_none_or(|known| known.contains(name))
    }
}

pub(super) fn put(
    members: &mut Map<String, Value>,
    name: String,
    value: Value,
    what: &str,
) -> Result<(), String> {
    match members.get(&name) {
        Some(other) if *other != value => Err(format!(
            "the {what} {name:?} is given twice, under its listed name and under the service's own, with different values; \
             give it once"
        )),
        Some(_) => Ok(()),
        None => {
            members.insert(name, value);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
