//! The arguments of a call, under the names that its request needs.

use std::collections::HashSet;

use serde_json::{Map, Value};
use shoal_ports::shown;

use super::{Inputs, ParameterInput};
use crate::openapi::schema::WIRE_NAME;

/// Unknown arguments of one call that the log names.
const LOGGED: usize = 5;
/// Characters of such a name.
const LOGGED_NAME: usize = 64;

/// Returns the properties of a tool's schema, as they are listed and as the service names them, if it has no others.
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
    /// A call's arguments: parameters under the names that the tool has for them, everything else under the service's own.
    /// A caller may use either.
    ///
    /// # Errors
    /// Says what is wrong with the arguments, in words for the caller.
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

    /// The parameter that the service calls so, where the tool has no argument of that name.
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

    /// Whether the tool lists an argument of this name, outside a body whose properties are arguments.
    fn has_argument(&self, name: &str) -> bool {
        let body = self.body.as_ref().and_then(|body| body.argument.as_deref());
        body == Some(name) || self.parameters.iter().any(|it| it.name == name)
    }

    /// Leaves out arguments that the tool does not have, where its schema says that there are no others: some clients add their own.
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

    /// Whether the tool may have an argument of this name.
    fn is_known(&self, name: &str) -> bool {
        self.known.as_ref().is_none_or(|known| known.contains(name))
    }
}

/// Takes a member over, unless another value is there already.
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
