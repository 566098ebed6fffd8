use serde_json::{Value, json};

use super::ParameterEncoder;
use crate::openapi::config::DeepLists;
use crate::openapi::document::Parameter;
use crate::openapi::path::Segments;

fn writer(parameter: Value) -> ParameterEncoder {
    let parameter: Parameter = serde_json::from_value(parameter).unwrap();
    ParameterEncoder::of(&parameter).unwrap()
}

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
            rows(|value| writer.in_path(value, &Segments::One).unwrap()),
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
                "color%5B%5D=blue&color%5B%5D=black",
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
    let path = writer(json!({ "name": "x", "in": "path" }))
        .in_path(&hostile, &Segments::One)
        .unwrap();
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

fn written(parameter: Value, lists: DeepLists, value: Value) -> String {
    let mut writer = writer(parameter);
    writer.write_lists_as(lists);
    let pairs = writer.pairs(&value).into_iter();
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&").replace("%5B", "[").replace("%5D", "]")
}

#[test]
fn lists_in_deep_objects_are_written_as_is_configured() {
    let deep = json!({ "name": "a", "in": "query", "style": "deepObject", "explode": true });
    let value = json!({ "b": [1, 2], "c": [{ "d": "x", "e": [3] }], "f": null, "g": {} });
    for (lists, expected) in [
        (
            DeepLists::Mixed,
            "a[b][]=1&a[b][]=2&a[c][0][d]=x&a[c][0][e][]=3",
        ),
        (
            DeepLists::Brackets,
            "a[b][]=1&a[b][]=2&a[c][][d]=x&a[c][][e][]=3",
        ),
        (
            DeepLists::Indices,
            "a[b][0]=1&a[b][1]=2&a[c][0][d]=x&a[c][0][e][0]=3",
        ),
        (DeepLists::Repeat, "a[b]=1&a[b]=2&a[c][d]=x&a[c][e]=3"),
    ] {
        assert_eq!(
            written(deep.clone(), lists, value.clone()),
            expected,
            "{lists:?}"
        );
    }
    assert_eq!(
        written(deep.clone(), DeepLists::Mixed, json!(["x", "y"])),
        "a[]=x&a[]=y"
    );
    assert_eq!(written(deep.clone(), DeepLists::Mixed, json!(5)), "a=5");
    assert_eq!(written(deep, DeepLists::Mixed, json!([])), "");
}

#[test]
fn words_of_swagger_and_unknown_ones_have_a_meaning() {
    let list = json!(["x", "y"]);
    for (style, place, expected) in [
        ("csv", "query", "a=x,y"),
        ("multi", "query", "a=x&a=y"),
        ("ssv", "query", "a=x%20y"),
        ("tsv", "query", "a=x%09y"),
        ("pipes", "query", "a=x%7Cy"),
        ("whatever", "query", "a=x&a=y"),
    ] {
        let parameter = json!({ "name": "a", "in": place, "style": style });
        assert_eq!(
            written(parameter, DeepLists::Mixed, list.clone()),
            expected,
            "{style}"
        );
    }
}

#[test]
fn reserved_characters_and_triples_stay_where_they_may() {
    let parameter = json!({ "name": "a", "in": "query", "allowReserved": true });
    let value = json!("a/b?c=%20&%zz%2");
    assert_eq!(
        written(parameter, DeepLists::Mixed, value),
        "a=a/b?c%3D%20%26%25zz%252"
    );
}

#[test]
fn a_cookie_of_3_2_is_not_encoded_and_a_query_string_is_the_whole_query() {
    let cookie = json!({ "name": "c", "in": "cookie", "style": "cookie" });
    assert_eq!(
        written(cookie, DeepLists::Mixed, json!("a/b%20")),
        "c=a/b%20"
    );
    let whole =
        |content: Value| writer(json!({ "name": "q", "in": "querystring", "content": content }));
    let form = whole(json!({ "application/x-www-form-urlencoded": {} }));
    assert_eq!(
        form.as_query(&json!({ "a": "x y", "b": [1, 2] })),
        "a=x%20y&b=1&b=2"
    );
    let json = whole(json!({ "application/json": {} }));
    assert_eq!(json.as_query(&json!({ "a": 1 })), "%7B%22a%22%3A1%7D");
}

#[test]
fn what_is_null_is_not_written() {
    let form = json!({ "name": "a", "in": "query", "explode": false });
    assert_eq!(
        written(form.clone(), DeepLists::Mixed, json!({ "b": null, "c": 1 })),
        "a=c,1"
    );
    assert_eq!(
        written(form.clone(), DeepLists::Mixed, json!([null, "x"])),
        "a=x"
    );
    assert_eq!(written(form, DeepLists::Mixed, json!({})), "");
}
