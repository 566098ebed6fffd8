use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::{Key, Map};
use cel::{Context, Value};

use super::Checked;
use crate::subject::KnownSubject;
use crate::target::{Annotations, Target};

/// Adds the values that the condition may read.
///
/// # Errors
/// The caller's claims are too large or not an object.
pub(super) fn add(
    context: &mut Context<'_, '_>,
    reads: Checked,
    subject: &KnownSubject,
    target: &Target<'_>,
    annotations: &Annotations,
) -> Result<(), String> {
    context.add_variable_from_value("principal", text(&subject.principal));
    if reads.grant || reads.client {
        let values = subject.values.as_ref();
        let values =
            values.ok_or("the caller's claims are not an object, or are too large to evaluate")?;
        let scopes = subject.scopes.iter().map(|scope| text(scope)).collect();
        context.add_variable_from_value("scopes", Value::List(Arc::new(scopes)));
        context.add_variable_from_value("issuer", text(&values.issuer));
        context.add_variable_from_value("claims", of(&values.claims));
        context.add_variable_from_value("client", of(&values.client));
    }
    if reads.target {
        let all = annotations.all.iter();
        let all = all.map(|(name, value)| (Key::from(name.as_str()), of(value)));
        let members = [
            ("kind", text(target.kind.as_str())),
            ("name", text(target.name)),
            ("pool", text(target.pool)),
            ("annotations", map(all)),
            ("read_only", Value::Bool(annotations.read_only())),
            ("destructive", Value::Bool(annotations.destructive())),
            ("idempotent", Value::Bool(annotations.idempotent())),
            ("open_world", Value::Bool(annotations.open_world())),
        ];
        let members = members
            .into_iter()
            .map(|(name, value)| (Key::from(name), value));
        context.add_variable_from_value("target", map(members));
    }
    Ok(())
}

fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

fn map(members: impl Iterator<Item = (Key, Value)>) -> Value {
    let members: HashMap<Key, Value> = members.collect();
    Value::Map(Map {
        map: Arc::new(members),
    })
}

fn of(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(value) => text(value),
        serde_json::Value::Array(items) => Value::List(Arc::new(items.iter().map(of).collect())),
        serde_json::Value::Object(members) => map(members
            .iter()
            .map(|(name, value)| (Key::from(name.as_str()), of(value)))),
    }
}
