use std::collections::HashSet;

use serde_json::{Map, Value};
use shoal_protocol::{free_name, is_legal_name, legal_name};

/// Holds the service's name of a renamed property.
pub(in crate::openapi) const WIRE_NAME: &str = "x-shoal-name";

/// Legal names stay unchanged.
pub(in crate::openapi) fn aliases(names: &[&str]) -> Vec<String> {
    let mut taken: HashSet<String> = names
        .iter()
        .filter(|name| is_legal_name(name))
        .map(|name| (*name).to_owned())
        .collect();
    let alias = |name: &&str| match is_legal_name(name) {
        true => (*name).to_owned(),
        false => {
            let alias = free_name(&legal_name(name), |name| taken.contains(name));
            taken.insert(alias.clone());
            alias
        }
    };
    names.iter().map(alias).collect()
}

pub(in crate::openapi) fn without_wire_names(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let shown = members.iter().filter(|(name, _)| *name != WIRE_NAME);
            let shown = shown.map(|(name, value)| (name.clone(), without_wire_names(value)));
            Value::Object(shown.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_wire_names).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::aliases;

    #[test]
    fn a_legal_name_keeps_its_place() {
        let names = ["type", "@type", "include[]", "include", "include[", "$type"];
        let listed = [
            "type",
            "type_2",
            "include_2",
            "include",
            "include_3",
            "type_3",
        ];
        assert_eq!(aliases(&names), listed);
    }
}
