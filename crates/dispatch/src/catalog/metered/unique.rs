//! Checks `uniqueItems` without quadratic time.
//!
//! Under the hash of the validator's own check, `[[1], 2]` and `[1, [2]]` collide, and so do large integers.

use std::collections::HashSet;

use jsonschema::json::unique;
use serde_json::{Number, Value};

use super::super::budget::charge;

const FEW: usize = 15;

pub(super) fn is_unique(items: &[Value]) -> bool {
    if items.len() <= FEW {
        items.iter().for_each(charge_for);
        return unique::is_unique(items);
    }
    let mut seen = HashSet::with_capacity(items.len());
    items.iter().all(|item| {
        let mut form = Vec::new();
        write(item, &mut form);
        charge(1 + form.len() as u64 / 16);
        seen.insert(form)
    })
}

fn charge_for(value: &Value) {
    charge(FEW as u64);
    match value {
        Value::Array(items) => items.iter().for_each(charge_for),
        Value::Object(members) => members.values().for_each(charge_for),
        Value::String(string) => charge(string.len() as u64 / 64),
        _ => {}
    }
}

/// The bytes are equal exactly if the values are.
fn write(value: &Value, form: &mut Vec<u8>) {
    match value {
        Value::Null => form.push(b'n'),
        Value::Bool(value) => form.push(if *value { b't' } else { b'f' }),
        Value::Number(number) => write_number(number, form),
        Value::String(string) => write_string(string, form),
        Value::Array(items) => {
            form.push(b'[');
            items.iter().for_each(|item| write(item, form));
            form.push(b']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            form.push(b'{');
            for (name, value) in members {
                write_string(name, form);
                write(value, form);
            }
            form.push(b'}');
        }
    }
}

fn write_string(string: &str, form: &mut Vec<u8>) {
    form.push(b'"');
    form.extend_from_slice(&string.len().to_le_bytes());
    form.extend_from_slice(string.as_bytes());
}

fn write_number(number: &Number, form: &mut Vec<u8>) {
    let whole = number.as_i128().or_else(|| number.as_f64().and_then(whole));
    match (whole, number.as_f64()) {
        (Some(whole), _) => {
            form.push(b'i');
            form.extend_from_slice(&whole.to_le_bytes());
        }
        (None, float) => {
            form.push(b'd');
            form.extend_from_slice(&float.unwrap_or(f64::NAN).to_bits().to_le_bytes());
        }
    }
}

fn whole(float: f64) -> Option<i128> {
    // Larger integers are read as floats.
    let within = float.abs() <= 2_f64.powi(64);
    (within && float.fract() == 0.0).then_some(float as i128)
}

#[cfg(test)]
mod tests {
    use jsonschema::json::unique;
    use proptest::prelude::{Strategy as _, any, prop, prop_oneof, proptest};
    use serde_json::{Value, json};

    use super::is_unique;

    fn values() -> impl proptest::strategy::Strategy<Value = Value> {
        let leaf = prop_oneof![
            (0..4_i64).prop_map(Value::from),
            (0..8_u32).prop_map(|half| json!(f64::from(half) / 2.0)),
            any::<bool>().prop_map(Value::from),
            (-2..3_i64).prop_map(|by| json!(9_007_199_254_740_992_i64 + by)),
            "[ab]{0,2}".prop_map(Value::from),
            proptest::strategy::Just(Value::Null),
        ];
        leaf.prop_recursive(2, 6, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::vec(("[ab]", inner), 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn many_are_told_apart_as_few_are(pair in (values(), values())) {
            let filler = (0..20).map(|at| json!(format!("filler {at}")));
            let mut many: Vec<Value> = filler.collect();
            many.extend([pair.0.clone(), pair.1.clone()]);
            assert_eq!(is_unique(&many), unique::is_unique(&[pair.0, pair.1]));
        }
    }
}
