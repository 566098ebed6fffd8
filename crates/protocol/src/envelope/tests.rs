use bytes::Bytes;

use super::{Body, Message, Outcome};
use crate::{RawJson, code, compose};

fn parse(text: &str) -> Result<Body, super::InvalidMessage> {
    Body::parse(&Bytes::copy_from_slice(text.as_bytes()), 64)
}

#[test]
fn params_survive_byte_for_byte() {
    let params = r#"{"z":1.0,"a": 12345678901234567890, "unknown":{"\u0041":[1 ,2]}}"#;
    let text = format!(r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{params}}}"#);
    let Body::Single(Message::Request(request)) = parse(&text).unwrap() else {
        panic!()
    };
    assert_eq!(request.params.unwrap().as_str(), params);
    assert_eq!(request.id.to_json().as_str(), "\"x\"");
}

#[test]
fn not_json_is_a_parse_error() {
    for text in ["", "{", "{\"jsonrpc\":\"2.0\",", "nonsense", "{\"a\":1}}"] {
        assert_eq!(
            parse(text).unwrap_err().error.code,
            code::PARSE_ERROR,
            "{text}"
        );
    }
}

#[test]
fn invalid_messages_keep_a_readable_id() {
    let error = parse(r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#).unwrap_err();
    assert_eq!(error.error.code, code::INVALID_REQUEST);
    assert_eq!(error.id.unwrap().to_json().as_str(), "7");
}

#[test]
fn a_repeated_member_leaves_the_id_readable() {
    for (text, id) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}"#,
            Some("7"),
        ),
        (
            r#"{"method":"ping","method":"ping","jsonrpc":"2.0","id":"x"}"#,
            Some("\"x\""),
        ),
        (
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"method":"ping"}"#,
            Some("7"),
        ),
        (r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#, None),
        (
            r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping","method":"ping"}"#,
            None,
        ),
    ] {
        let refused = parse(text).unwrap_err();
        assert_eq!(refused.error.code, code::INVALID_REQUEST, "{text}");
        assert!(
            refused.error.message.contains("duplicate field `"),
            "{text}"
        );
        let found = refused.id.map(|id| id.to_json().as_str().to_owned());
        assert_eq!(found.as_deref(), id, "{text}");
    }
}

#[test]
fn of_a_servers_repeated_members_the_last_one_counts() {
    for text in [
        r#"{"jsonrpc":"2.0","id":7,"id":8,"result":{}}"#,
        r#"{"jsonrpc":"1.0","jsonrpc":"2.0","id":8,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":8,"result":1,"result":{}}"#,
    ] {
        let text = Bytes::from_static(text.as_bytes());
        let Ok(Body::Single(Message::Response(answer))) = Body::from_server(&text, 8) else {
            panic!("{text:?}")
        };
        assert_eq!(answer.id.number(), Some(8));
        assert!(matches!(answer.outcome, Outcome::Result(result) if result.is_object()));
        assert!(Body::parse(&text, 8).is_err());
    }
}

#[test]
fn what_readers_could_take_for_two_messages_is_refused_by_its_id() {
    let refused = |text: &str| {
        let text = Bytes::copy_from_slice(text.as_bytes());
        let refused = Body::from_client(&text, 64).unwrap_err();
        let id = refused.id.map(|id| id.to_json().as_str().to_owned());
        (refused.error.code, id.unwrap_or_default())
    };
    let call = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#)
    };
    for params in [
        r#"{"name":"a","name":"b"}"#,
        r#"{"name":"a","arguments":{"n":1,"n":2}}"#,
        r#"{"name":"a","arguments":{"n":[{"m":{"\u0061":1,"a":2}}]}}"#,
        r#"{"name":"a","_meta":{"progressToken":1,"progressToken":2}}"#,
        r#"{"name":"a","\u006eame":"b"}"#,
        r#"{"name":"a","arguments":{"\ud800":1}}"#,
    ] {
        let expected = (code::INVALID_PARAMS, "7".to_owned());
        assert_eq!(refused(&call(params)), expected, "{params}");
        assert!(parse(&call(params)).is_ok(), "{params}");
    }
    for (text, id) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"result":{"action":"decline","action":"accept"}}"#,
            "7",
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"","data":{"a":1,"a":2}}}"#,
            "7",
        ),
    ] {
        assert_eq!(
            refused(text),
            (code::INVALID_REQUEST, id.to_owned()),
            "{text}"
        );
    }
    let said = r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1,"a":2}}"#;
    assert_eq!(refused(said), (code::INVALID_PARAMS, String::new()));
    let batch = format!("[{},{}]", call(r#"{"a":1,"a":2}"#), call(r#"{"a":1}"#));
    let Ok(Body::Batch(members)) = Body::from_client(&batch.into(), 64) else {
        panic!()
    };
    assert!(members[0].is_err() && members[1].is_ok());
}

#[test]
fn refuses_what_is_no_message() {
    for text in [
        "1",
        "\"x\"",
        "{}",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        "[]",
    ] {
        assert_eq!(
            parse(text).unwrap_err().error.code,
            code::INVALID_REQUEST,
            "{text}"
        );
    }
}

#[test]
fn what_the_official_sdks_read_is_read() {
    let bom = format!("\u{feff}{}", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert!(matches!(parse(&bom), Ok(Body::Single(Message::Request(_)))));
    let error = |text: &str| match parse(text) {
        Ok(Body::Single(Message::Response(response))) => match response.outcome {
            Outcome::Error(_) => response.id,
            Outcome::Result(_) => panic!("{text}"),
        },
        other => panic!("{text}: {other:?}"),
    };
    let float = r#"{"jsonrpc":"2.0","id":7.0,"result":null,"error":{"code":1,"message":""}}"#;
    assert_eq!(error(float).to_json().as_str(), "7");
    let unread = error(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}"#);
    assert_eq!(unread.number_as_answered(), None);
    assert!(parse(r#"{"jsonrpc":"2.0","id":null,"result":{}}"#).is_err());
}

#[test]
fn a_bracket_bomb_is_refused_before_parsing() {
    let bomb = "[".repeat(100_000);
    assert_eq!(parse(&bomb).unwrap_err().error.code, code::INVALID_REQUEST);
}

#[test]
fn a_batch_keeps_its_bad_members_in_place() {
    let Body::Batch(members) = parse(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, 5]"#).unwrap()
    else {
        panic!()
    };
    assert!(members[0].is_ok());
    assert!(members[1].is_err());
}

#[test]
fn responses_carry_result_or_error() {
    let Body::Single(Message::Response(response)) =
        parse(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no","data":[1.0]}}"#)
            .unwrap()
    else {
        panic!()
    };
    let Outcome::Error(error) = response.outcome else {
        panic!()
    };
    assert_eq!(error.data.unwrap().as_str(), "[1.0]");
}

#[test]
fn composed_messages_parse_back() {
    let result = RawJson::from_static(r#"{"n":1.0}"#);
    let id = crate::RequestId::from_number(4);
    let text = compose::response(&id, &result);
    let Ok(Body::Single(Message::Response(response))) = Body::parse(&text, 64) else {
        panic!()
    };
    assert_eq!(response.id, id);
    let Outcome::Result(back) = response.outcome else {
        panic!()
    };
    assert_eq!(back, result);
}
