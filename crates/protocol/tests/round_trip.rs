//! Parameters and results survive the envelope byte for byte.

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use shoal_protocol::{
    Body, Message, Method, Outcome, RawJson, RawObject, RequestId, notification, request, response,
};

fn json() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        Just("1.0".to_owned()),
        Just("-0".to_owned()),
        Just("1E+2".to_owned()),
        Just("123456789012345678901234567890.00".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
    ];
    let string = prop_oneof![
        Just(r#""\u0061\/\ud83d\ude00""#.to_owned()),
        Just(r#""{[,:\"}]\\""#.to_owned()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).expect("a string")),
    ];
    let leaf = prop_oneof![
        number,
        string.clone(),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        let space = prop_oneof![Just(""), Just(" "), Just("\n\t")];
        prop_oneof![
            (space.clone(), prop::collection::vec(inner.clone(), 0..6)).prop_map(
                |(space, items)| {
                    format!("[{space}{}{space}]", items.join(&format!("{space},")))
                }
            ),
            (space, prop::collection::vec((string.clone(), inner), 0..6)).prop_map(
                |(space, members)| {
                    let members: Vec<_> = members
                        .into_iter()
                        .map(|(key, value)| format!("{key}{space}:{space}{value}"))
                        .collect();
                    format!("{{{space}{}{space}}}", members.join(","))
                }
            ),
        ]
    })
}

fn runner(cases: u32) -> TestRunner {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn raw(text: &str) -> RawJson {
    RawJson::parse_text(Bytes::copy_from_slice(text.as_bytes())).expect("generated JSON is valid")
}

fn parse(text: &Bytes) -> Message {
    match Body::parse(text, 64).expect("a message") {
        Body::Single(message) => message,
        Body::Batch(_) => panic!("not a batch"),
    }
}

#[test]
fn results_and_ids_survive_byte_for_byte() {
    let ids = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).expect("a string")),
        Just(r#""\u0041""#.to_owned()),
        Just("98765432109876543210".to_owned()),
    ];
    runner(2_000)
        .run(&(ids, json()), |(id, result)| {
            let id = RequestId::from_json(&raw(&id)).expect("an id");
            let result = raw(&result);
            let Message::Response(back) = parse(&response(&id, &result)) else {
                return Err(TestCaseError::fail("not a response"));
            };
            prop_assert_eq!(back.id.as_bytes(), id.as_bytes());
            let Outcome::Result(back) = back.outcome else {
                return Err(TestCaseError::fail("not a result"));
            };
            prop_assert_eq!(back.as_bytes(), result.as_bytes());
            Ok(())
        })
        .expect("round trip");
}

#[test]
fn every_name_of_a_notification_is_written_so_that_it_can_be_read() {
    let names = prop_oneof![Just("notifications/progress".to_owned()), any::<String>()];
    runner(2_000)
        .run(&(names, json()), |(name, value)| {
            let params = raw(&format!(r#"{{"a":{value}}}"#));
            let written = notification(&name, Some(&params));
            let Message::Notification(back) = parse(&written) else {
                return Err(TestCaseError::fail("not a notification"));
            };
            prop_assert_eq!(back.method.as_str(), name);
            let params_back = back.params.as_ref().map(RawJson::as_bytes);
            prop_assert_eq!(params_back, Some(params.as_bytes()));
            Ok(())
        })
        .expect("round trip");
}

#[test]
fn params_survive_byte_for_byte_also_when_another_member_is_edited() {
    runner(2_000)
        .run(&(json(), json()), |(first, second)| {
            let text = format!(r#"{{"a":{first} , "_meta":{{}},"b": {second}}}"#);
            let params = raw(&text);
            let id = RequestId::from_number(1);
            let written = request(&id, Method::ToolsCall.as_str(), Some(&params));
            let Message::Request(back) = parse(&written) else {
                return Err(TestCaseError::fail("not a request"));
            };
            prop_assert_eq!(
                back.params.as_ref().map(RawJson::as_bytes),
                Some(params.as_bytes())
            );
            let mut object = RawObject::of(&params).expect("an object");
            object.set("_meta", RawJson::from_static(r#"{"x":1}"#));
            let edited = object.to_json();
            let expected = format!(r#"{{"a":{first},"_meta":{{"x":1}},"b":{second}}}"#);
            prop_assert_eq!(edited.as_str(), expected.as_str());
            Ok(())
        })
        .expect("round trip");
}
