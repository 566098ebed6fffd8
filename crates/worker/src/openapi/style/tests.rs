use serde_json::{Value, json};

use super::ParameterEncoder;
use crate::openapi::document::Parameter;

fn writer(parameter: Value) -> ParameterEncoder {
    let parameter: Parameter = serde_json::from_value(parameter).unwrap();
    ParameterEncoder::of(&parameter).unwrap()
}

/// What the tables of the specification have for a string, a list and an object.
fn rows(of: impl Fn(&Value) -> String) -> [String; 3] {
    let values = [
        json!("blue"),
        json!(["blue", "black"]),
        json!({ "R": 100, "G": 200 }),
    ];
    [0, 1, 2].map(|at| of(&values[at]))
}

#[test]
fn paths_are_written_as_the_specification_has_it() {
    for (style, explode, expected) in [
        ("simple", false, ["blue", "blue,black", "R,100,G,200"]),
        ("simple", true, ["blue", "blue,black", "R=100,G=200"]),
        ("label", false, [".blue", ".blue,black", ".R,100,G,200"]),
        ("label", true, [".blue", ".blue.black", ".R=100.G=200"]),
        (
            "matrix",
            false,
            [";color=blue", ";color=blue,black", ";color=R,100,G,200"],
        ),
        (
            "matrix",
            true,
            [";color=blue", ";color=blue;color=black", ";R=100;G=200"],
        ),
    ] {
        let writer =
            writer(json!({ "name": "color", "in": "path", "style": style, "explode": explode }));
        assert_eq!(
            rows(|value| writer.in_path(value)),
            expected,
            "{style} {explode}"
        );
    }
}

#[test]
fn queries_are_written_as_the_specification_has_it() {
    for (style, explode, expected) in [
        (
            "form",
            true,
            ["color=blue", "color=blue&color=black", "R=100&G=200"],
        ),
        (
            "form",
            false,
            ["color=blue", "color=blue,black", "color=R,100,G,200"],
        ),
        (
            "spaceDelimited",
            false,
            [
                "color=blue",
                "color=blue%20black",
                "color=R%20100%20G%20200",
            ],
        ),
        (
            "pipeDelimited",
            false,
            [
                "color=blue",
                "color=blue%7Cblack",
                "color=R%7C100%7CG%7C200",
            ],
        ),
        (
            "deepObject",
            true,
            [
                "color=blue",
                "color=blue&color=black",
                "color%5BR%5D=100&color%5BG%5D=200",
            ],
        ),
    ] {
        let writer =
            writer(json!({ "name": "color", "in": "query", "style": style, "explode": explode }));
        let written = rows(|value| {
            let pairs = writer
                .pairs(value)
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"));
            pairs.collect::<Vec<_>>().join("&")
        });
        assert_eq!(written, expected, "{style} {explode}");
    }
}

#[test]
fn a_value_stays_a_value() {
    let hostile = json!("a/../b?c=d&e#f;g\r\n%2e\\é");
    let path = writer(json!({ "name": "x", "in": "path" })).in_path(&hostile);
    assert_eq!(path, "a%2F..%2Fb%3Fc%3Dd%26e%23f%3Bg%0D%0A%252e%5C%C3%A9");
    let query = json!({ "name": "x", "in": "query", "allowReserved": true });
    let query = writer(query).pairs(&json!("a/b?c=d&e#f+g:h"));
    assert_eq!(query[0].1, "a/b?c%3Dd%26e%23f%2Bg:h");
    let as_json = json!({ "name": "x", "in": "query", "content": { "application/json": {} } });
    assert_eq!(
        writer(as_json).pairs(&json!({ "a": 1 }))[0].1,
        "%7B%22a%22%3A1%7D"
    );
}

#[test]
fn a_style_that_does_not_go_there_is_refused() {
    let parameter: Parameter =
        serde_json::from_value(json!({ "name": "x", "in": "header", "style": "form" })).unwrap();
    assert!(
        ParameterEncoder::of(&parameter)
            .unwrap_err()
            .contains("\"x\" cannot have the style")
    );
}
