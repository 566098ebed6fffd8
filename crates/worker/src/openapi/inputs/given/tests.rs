use serde_json::{Value, json};

use super::super::Inputs;
use super::super::tests::{inputs, json_body};

fn given(inputs: &Inputs, arguments: Value) -> Result<Value, String> {
    let Value::Object(arguments) = arguments else {
        panic!("{arguments}");
    };
    inputs.request_arguments(arguments).map(Value::Object)
}

fn query(names: &[&str]) -> Value {
    let parameters = names.iter();
    let parameters = parameters.map(|name| json!({ "name": name, "in": "query", "schema": {} }));
    parameters.collect()
}

#[test]
fn a_parameter_may_be_given_under_the_services_name() {
    let inputs = inputs(query(&["$top", "filter[x]", "top_2"]), Value::Null);
    for (arguments, expected) in [
        (
            json!({ "$top": 1, "filter[x]": 2 }),
            json!({ "top": 1, "filter_x": 2 }),
        ),
        (
            json!({ "top": 1, "filter_x": 2 }),
            json!({ "top": 1, "filter_x": 2 }),
        ),
        (json!({ "top": 1, "$top": 1 }), json!({ "top": 1 })),
        (json!({ "$top": [1], "top": [1] }), json!({ "top": [1] })),
    ] {
        assert_eq!(given(&inputs, arguments), Ok(expected));
    }
    for twice in [
        json!({ "top": 1, "$top": 2 }),
        json!({ "$top": 2, "top": 1 }),
    ] {
        let why = given(&inputs, twice).unwrap_err();
        assert!(why.contains("\"top\" is given twice"), "{why}");
    }
}

#[test]
fn a_name_that_the_tool_lists_is_not_taken_for_another() {
    let both = json!([
        { "name": "id", "in": "path", "schema": {} },
        { "name": "id", "in": "query", "schema": {} },
        { "name": "$a", "in": "query", "schema": {} },
        { "name": "$a", "in": "header", "schema": {} },
    ]);
    let inputs = inputs(both, Value::Null);
    let arguments = json!({ "id": 1, "a": 2 });
    assert_eq!(given(&inputs, arguments.clone()), Ok(arguments));
    let why = given(&inputs, json!({ "id": 1, "$a": 2 })).unwrap_err();
    assert_eq!(
        why,
        "the argument \"$a\" may be \"a\" or \"a_in_header\"; use these names"
    );
}

#[test]
fn an_argument_that_the_tool_does_not_have_is_left_out_where_the_schema_is_closed() {
    let closed = json!({ "type": "object", "additionalProperties": false, "properties": { "@type": {}, "b": {} } });
    let of_closed = inputs(query(&["q"]), json_body(true, closed));
    assert_eq!(of_closed.schema["additionalProperties"], false);
    let sent = json!({ "q": 1, "@type": 2, "b": 3 });
    assert_eq!(given(&of_closed, sent.clone()), Ok(sent.clone()));
    // n8n sends such extra arguments.
    let more = json!({ "q": 1, "sessionId": "n8n", "@type": 2, "b": 3, "$b": 4 });
    assert_eq!(given(&of_closed, more), Ok(sent));
    let none = inputs(json!([]), Value::Null);
    assert_eq!(given(&none, json!({ "sessionId": "n8n" })), Ok(json!({})));
    let open = json!({ "type": "object", "properties": { "b": {} } });
    let sent = json!({ "q": 1, "nope": 2 });
    let of_open = inputs(query(&["q"]), json_body(true, open));
    assert_eq!(given(&of_open, sent.clone()), Ok(sent));
}
