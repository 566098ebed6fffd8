use serde_json::{Value, json};

use super::WireNames;

fn restored(schema: Value, arguments: Value) -> Value {
    let Value::Object(arguments) = arguments else {
        panic!("{arguments}");
    };
    Value::Object(WireNames(schema).restored(arguments).unwrap())
}

#[test]
fn arguments_are_named_as_the_service_names_them_at_every_depth() {
    let schema = json!({
        "type": "object",
        "properties": {
            "include": { "type": "array", "x-shoal-name": "include[]" },
            "pet": { "$ref": "#/$defs/Pet" },
            "pets": { "type": "array", "items": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/Pet" }] } },
            "by_name": { "type": "object", "additionalProperties": { "$ref": "#/$defs/Pet" } },
            "metadata": { "type": "object" },
        },
        "$defs": { "Pet": { "allOf": [
            { "type": "object", "properties": { "type": { "x-shoal-name": "@type" }, "friend": { "$ref": "#/$defs/Pet" } } },
        ] } },
    });
    let given = json!({ "type": "dog", "friend": { "type": "cat", "name": "Mia" } });
    let meant = json!({ "@type": "dog", "friend": { "@type": "cat", "name": "Mia" } });
    let arguments = json!({
        "include": ["a"], "pet": given, "pets": [null, given], "by_name": { "type": given },
        "metadata": { "type": 1, "include": 2 }, "other": { "type": 3 },
    });
    assert_eq!(
        restored(schema, arguments),
        json!({
            "include[]": ["a"], "pet": meant, "pets": [null, meant], "by_name": { "type": meant },
            "metadata": { "type": 1, "include": 2 }, "other": { "type": 3 },
        })
    );
}

#[test]
fn a_schema_that_is_made_of_itself_ends() {
    let schema = json!({ "allOf": [{ "$ref": "#/$defs/A" }], "$defs": {
        "A": { "anyOf": [{ "$ref": "#/$defs/A" }, { "properties": { "a": { "x-shoal-name": "$a" } } }] } } });
    assert_eq!(restored(schema, json!({ "a": 1 })), json!({ "$a": 1 }));
}

#[test]
fn the_services_own_names_are_taken_at_every_depth() {
    let schema = json!({ "type": "object", "properties": { "pet": { "$ref": "#/$defs/Pet", "x-shoal-name": "$pet" } }, "$defs": { "Pet": {
        "type": "object", "properties": { "type_2": { "x-shoal-name": "@type" }, "type": {}, "friend": { "$ref": "#/$defs/Pet" } } } } });
    for given in [
        json!({ "$pet": { "@type": "a", "friend": { "type_2": "b", "type": "c" } } }),
        json!({ "pet": { "type_2": "a", "friend": { "@type": "b", "type": "c" } } }),
        json!({ "pet": { "type_2": "a", "@type": "a", "friend": { "@type": "b", "type": "c" } } }),
    ] {
        let meant = json!({ "$pet": { "@type": "a", "friend": { "@type": "b", "type": "c" } } });
        assert_eq!(restored(schema.clone(), given), meant);
    }
    let twice = json!({ "pet": { "friend": { "type_2": "a", "@type": "b" } } });
    let names = WireNames(schema);
    let why = names.restored(twice.as_object().unwrap().clone());
    let why = why.unwrap_err();
    assert!(why.contains("\"@type\" is given twice"), "{why}");
}
