use std::sync::Arc;

use serde_json::{Value, json};
use shoal_dispatch::Config;
use shoal_ports::{CallFailure, CallOutcome, CatalogSettings, PoolCatalog};

use crate::fake_worker::FakeWorker;
use crate::setting::{CallExt as _, Setting, configured, items, legacy, modern};

const TOO_COMPLEX: &str = "Invalid arguments for tool hard: they are too complex to validate against the tool's inputSchema; send simpler ones";

fn expressions(combinator: &str) -> Value {
    let operation = |name: &str| {
        json!({
            "type": "object",
            "properties": {
                "op": {"const": name},
                "left": {"$ref": "#/$defs/expression"},
                "right": {"$ref": "#/$defs/expression"}
            },
            "required": ["op", "left", "right"]
        })
    };
    json!({
        "type": "object",
        "properties": {"expression": {"$ref": "#/$defs/expression"}},
        "$defs": {"expression": {combinator: [{"type": "number"}, operation("add"), operation("mul")]}}
    })
}

fn expression(depth: usize, leaf: Value) -> Value {
    (0..depth).fold(
        leaf,
        |left, _| json!({"op": "mul", "left": left, "right": 1}),
    )
}

/// Builds a chain of definitions, each of which refers twice to the next.
fn doubling(length: usize, combinator: &str, last: Value) -> Value {
    let mut definitions = serde_json::Map::new();
    for at in 0..length {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        definitions.insert(format!("d{at}"), json!({combinator: [next, next]}));
    }
    definitions.insert(format!("d{length}"), last);
    json!({"type": "object", "properties": {"value": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
}

fn offering(schema: &Value) -> PoolCatalog {
    PoolCatalog {
        tools: items(
            json!([{"name": "hard", "inputSchema": schema}, {"name": "easy",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}}]),
        ),
        ..PoolCatalog::default()
    }
}

async fn text_of(setting: &Setting, arguments: Value) -> Option<String> {
    let result = setting.result(legacy("hard", arguments)).await;
    (result["isError"] == true).then(|| result["content"][0]["text"].as_str().unwrap().to_owned())
}

fn offered(schema: &Value) -> (Setting, Arc<FakeWorker>) {
    let setting = configured(Config {
        catalog: CatalogSettings {
            validation_steps: 400_000,
            ..Config::default().catalog
        },
        ..Config::default()
    });
    let worker = setting.add(FakeWorker::new("w", "a", offering(schema)));
    (setting, worker)
}

#[tokio::test]
async fn an_invalid_leaf_deep_in_an_expression_is_told_without_all_its_branches() {
    for combinator in ["anyOf", "oneOf"] {
        let (setting, worker) = offered(&expressions(combinator));
        for (calls, depth) in [2, 8, 10, 12, 20, 40].into_iter().enumerate() {
            let arguments = json!({"expression": expression(depth, json!("x"))});
            let text = text_of(&setting, arguments).await.unwrap();
            assert!(
                text.starts_with("Invalid arguments for tool hard: "),
                "{text}"
            );
            if depth == 2 {
                assert!(text.contains("/expression: "), "{text}");
            } else if depth > 10 {
                assert!(text.contains("in too many ways to list them"), "{text}");
            }
            assert_eq!(worker.calls(), calls);
            let arguments = json!({"expression": expression(depth, json!(1))});
            assert_eq!(
                text_of(&setting, arguments).await,
                None,
                "{combinator} {depth}"
            );
        }
    }
}

#[tokio::test]
async fn definitions_that_double_are_refused_beyond_the_budget() {
    for length in [28, 64] {
        for (combinator, last) in [
            ("allOf", json!({"type": "integer"})),
            ("oneOf", json!({"type": "integer"})),
            ("allOf", json!(true)),
            ("anyOf", json!(false)),
        ] {
            let (setting, worker) = offered(&doubling(length, combinator, last.clone()));
            for value in [json!(1), json!("x")] {
                let text = text_of(&setting, json!({"value": value})).await;
                let quick = combinator == "allOf" && last.is_object() && value == "x";
                if !quick {
                    assert_eq!(
                        text.as_deref(),
                        Some(TOO_COMPLEX),
                        "{combinator} {last} {value}"
                    );
                }
                assert!(text.is_some());
            }
            assert_eq!(text_of(&setting, json!({})).await, None);
            assert_eq!(worker.calls(), 1);
        }
    }
    let (setting, worker) = offered(&doubling(6, "allOf", json!({"type": "integer"})));
    assert_eq!(text_of(&setting, json!({"value": 1})).await, None);
    assert!(
        text_of(&setting, json!({"value": true}))
            .await
            .unwrap()
            .contains("/value: ")
    );
    assert_eq!(worker.calls(), 1);
}

#[tokio::test]
async fn a_chain_of_definitions_costs_stack_but_not_all_of_it() {
    let mut definitions: serde_json::Map<_, _> = (0..150)
        .map(|at| {
            (
                format!("d{at}"),
                json!({"$ref": format!("#/$defs/d{}", at + 1)}),
            )
        })
        .collect();
    definitions.insert(
        "d150".to_owned(),
        json!({"properties": {"a": {"$ref": "#/$defs/d0"}}}),
    );
    let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    let (setting, _) = offered(&schema);
    let arguments = |depth| (0..depth).fold(json!({}), |inner, _| json!({"a": inner}));
    assert_eq!(text_of(&setting, arguments(2)).await, None);
    assert_eq!(
        text_of(&setting, arguments(100)).await.as_deref(),
        Some(TOO_COMPLEX)
    );
}

#[tokio::test]
async fn many_items_are_told_apart_without_comparing_all_of_them() {
    let (setting, worker) =
        offered(&json!({"type": "object", "properties": {"items": {"uniqueItems": true}}}));
    // The items of `close` and of `nested` collide under the validator's own hash function.
    let beyond = 1_u64 << 60;
    let close: Vec<u64> = (0..100_000).map(|by| beyond + by % 128).collect();
    let nested: Vec<Value> = (0..4_000)
        .map(|at| (0..at % 60).fold(json!([at]), |inner, _| json!([inner])))
        .collect();
    let apart: Vec<u64> = (0..100_000).collect();
    assert!(
        text_of(&setting, json!({"items": close}))
            .await
            .unwrap()
            .contains("/items: ")
    );
    assert_eq!(text_of(&setting, json!({"items": nested})).await, None);
    assert_eq!(text_of(&setting, json!({"items": apart})).await, None);
    assert_eq!(worker.calls(), 2);
}

#[tokio::test]
async fn a_pattern_that_backtracks_is_given_up() {
    let evil = json!({"type": "object", "properties": {"name": {"items": {"pattern": "^(?!x)(a|aa|\\1b)+$"}}}});
    let (setting, _) = offered(&evil);
    let name = "a".repeat(60) + "!";
    let names: Vec<_> = (0..50).map(|at| format!("{name}{at}")).collect();
    let text = text_of(&setting, json!({"name": names})).await.unwrap();
    assert!(
        text.starts_with("Invalid arguments for tool hard: "),
        "{text}"
    );
    let plain = json!({"type": "object", "properties": {"name": {"pattern": "^(a|aa)+$"}}});
    let (setting, _) = offered(&plain);
    let text = text_of(&setting, json!({"name": name})).await.unwrap();
    assert!(text.contains("does not match"), "{text}");
}

#[tokio::test]
async fn the_other_calls_go_on_and_each_principal_has_a_share() {
    let (setting, worker) = offered(&doubling(40, "oneOf", json!({"type": "integer"})));
    let setting = Arc::new(setting);
    let hard = |principal: &str| {
        let (setting, call) = (
            Arc::clone(&setting),
            legacy("hard", json!({"value": 1})).from(principal),
        );
        tokio::spawn(async move { setting.outcome(call).await })
    };
    let many: Vec<_> = (0..24).map(|_| hard("mallory")).collect();
    let other = hard("alice");
    setting.result(legacy("easy", json!({"a": 1}))).await;
    assert_eq!(worker.calls(), 1, "it did not wait for the others");
    let mut refused = 0;
    for call in many {
        if let CallOutcome::Failed(failure) = call.await.unwrap() {
            assert!(
                matches!(failure, CallFailure::Overloaded { .. }),
                "{failure:?}"
            );
            refused += 1;
        }
    }
    assert!(refused > 0);
    assert!(matches!(other.await.unwrap(), CallOutcome::Result(_)));
    let modern = setting.result(modern("hard", json!({"value": 1}))).await;
    assert_eq!(
        (&modern["isError"], &modern["resultType"]),
        (&json!(true), &json!("complete"))
    );
}
