//! What a call gives, under the names that its request needs.

use serde_json::{Map, Value, json};

use super::{Inputs, ParameterInput};
use crate::openapi::schema::WIRE_NAME;

/// Names that an error lists.
const LISTED: usize = 20;
/// Characters of a name that an error quotes.
const QUOTED: usize = 64;

/// The properties of a body beside which there are no others, where its schema says so: as they are listed, and as the service
/// names them.
pub(super) fn names_in(properties: &Map<String, Value>) -> Vec<String> {
    let own = properties
        .values()
        .filter_map(|property| property.get(WIRE_NAME)?.as_str());
    let own = own.map(str::to_owned);
    properties.keys().cloned().chain(own).collect()
}

impl Inputs {
    /// A call's arguments: parameters under the names that the tool has for them, everything else under the service's own.
    /// A caller may use either.
    ///
    /// # Errors
    /// What is wrong with the arguments, for whoever gave them.
    pub(in crate::openapi) fn given(
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
        self.refuse_unknown(&given)?;
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

    /// What nobody would read is told, where the schema says that there is no more.
    fn refuse_unknown(&self, given: &Map<String, Value>) -> Result<(), String> {
        let Some(properties) = &self.closed else {
            return Ok(());
        };
        let is_unknown = |name: &&String| !self.has_argument(name) && !properties.contains(*name);
        let unknown: Vec<&String> = given.keys().filter(is_unknown).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let body = self.body.iter().filter_map(|body| body.argument.as_ref());
        let known = self.parameters.iter().map(|it| &it.name).chain(body);
        let known: Vec<&String> = known.chain(properties).collect();
        // What the SDKs' servers say of closed schemas begins so.
        Err(format!(
            "Input validation error: the tool has no argument {}; {}",
            some(&unknown, "or"),
            match known.is_empty() {
                true => "it takes none".to_owned(),
                false => format!("it takes {}", some(&known, "and")),
            }
        ))
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

/// The first of them, quoted.
fn some(names: &[&String], last: &str) -> String {
    let quoted = names.iter().take(LISTED);
    let mut quoted: Vec<String> = quoted
        .map(|name| json!(shoal_protocol::shown(name, QUOTED)).to_string())
        .collect();
    match names.len() {
        1 => return quoted.remove(0),
        all if all > LISTED => quoted.push(format!("{} more", all - LISTED)),
        _ => {}
    }
    let end = quoted.pop().unwrap_or_default();
    format!("{} {last} {end}", quoted.join(", "))
}

#[cfg(test)]
mod tests;
