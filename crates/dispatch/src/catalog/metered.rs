//! JSON for the validator, with a [charge](super::budget) for each access to a value.

use std::borrow::Cow;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, cmp};
use serde_json::{Map, Number, Value};

use super::budget::{charge, charge_length, charge_name, charge_string};

mod unique;

/// Steps for an error, for which the validator stores two locations until the validation ends.
const ERROR: u64 = 50;

pub(super) struct Metered;

#[derive(Clone, Copy)]
pub(super) struct MeteredNode<'a>(pub(super) &'a Value);

pub(super) struct MeteredObject<'a>(&'a Map<String, Value>);

pub(super) struct MeteredArray<'a>(&'a [Value]);

impl Json for Metered {
    type Node<'a> = MeteredNode<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Value,
        string: &str,
        f: impl FnOnce(MeteredNode<'_>) -> T,
    ) -> T {
        charge_string(string);
        SerdeJson::with_string_node(buffer, string, |value| f(MeteredNode(value)))
    }
}

impl<'a> Node<'a, Metered> for MeteredNode<'a> {
    type Object = MeteredObject<'a>;
    type Array = MeteredArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<MeteredObject<'a>> {
        charge(1);
        self.0.as_object().map(MeteredObject)
    }

    fn as_array(&self) -> Option<MeteredArray<'a>> {
        charge(1);
        self.0.as_array().map(|items| MeteredArray(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match self.0 {
            Value::String(string) => {
                charge_string(string);
                Some(Cow::Borrowed(string))
            }
            _ => {
                charge(1);
                None
            }
        }
    }

    fn as_number(&self) -> Option<&'a Number> {
        charge(1);
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        charge(1);
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        charge(1);
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        charge(1);
        self.0.json_type()
    }

    fn string_length(&self) -> Option<u64> {
        self.0.as_str().inspect(|string| charge_length(string));
        self.0.string_length()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        charge(1 + width(self.0));
        cmp::equal(self.0, expected)
    }

    // The validator calls this mostly for errors.
    fn to_value(&self) -> Cow<'a, Value> {
        charge(ERROR);
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        charge(1);
        self.0.identity()
    }
}

impl<'a> Object<'a, Metered> for MeteredObject<'a> {
    type Node = MeteredNode<'a>;
    type MemberName = &'a str;
    type MembersIter = MeteredMembers<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<MeteredNode<'a>> {
        charge(1);
        self.0.get(key.as_str()).map(MeteredNode)
    }

    fn members(&self) -> MeteredMembers<'a> {
        MeteredMembers(self.0.iter())
    }
}

impl<'a> Array<'a, Metered> for MeteredArray<'a> {
    type Node = MeteredNode<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Elements<'a> {
        Elements(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        unique::is_unique(self.0)
    }
}

pub(super) struct MeteredMembers<'a>(serde_json::map::Iter<'a>);

impl<'a> Iterator for MeteredMembers<'a> {
    type Item = (&'a str, MeteredNode<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        charge_name(name);
        Some((name, MeteredNode(value)))
    }
}

pub(super) struct Elements<'a>(std::slice::Iter<'a, Value>);

impl<'a> Iterator for Elements<'a> {
    type Item = MeteredNode<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        charge(1);
        self.0.next().map(MeteredNode)
    }
}

fn width(value: &Value) -> u64 {
    let width = match value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        Value::String(string) => string.len() / 64,
        _ => 0,
    };
    width as u64
}
