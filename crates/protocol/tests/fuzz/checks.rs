use std::collections::HashSet;

use bytes::Bytes;
use shoal_protocol::{
    Body, Continuation, EventId, KeyRing, Message, Method, Outcome, ParamHeaders, RawJson,
    RawObject, RequestDigest, RequestMeta, RequestState, SealKey, SseParser, Token, Tokens,
    TraceContext, decode_value, encode_value, error_response, expect_equal, nesting_within,
    notification, request, response,
};

pub(crate) fn envelope(data: &[u8]) {
    let text = Bytes::copy_from_slice(data);
    let Ok(body) = Body::parse(&text, 32) else {
        return;
    };
    assert!(nesting_within(data, 32));
    unambiguous(&text);
    let members = match body {
        Body::Single(message) => vec![message],
        Body::Batch(members) => members.into_iter().filter_map(Result::ok).collect(),
    };
    for message in members {
        read_parts(&message);
        let written = write(&message);
        let again = Message::parse(&written).expect("what was written parses");
        assert_eq!(write(&again), written, "a second round changes nothing");
    }
}

fn unambiguous(text: &Bytes) {
    let Ok(Body::Single(Message::Request(request))) = Body::from_client(text, 32) else {
        return;
    };
    let Some(params) = request.params else { return };
    let mut open = vec![HashSet::new()];
    for token in Tokens::of(params.as_bytes()) {
        match token {
            Token::ObjectBegins => open.push(HashSet::new()),
            Token::ObjectEnds => drop(open.pop()),
            Token::Name(name) => {
                let name: String = serde_json::from_slice(name).expect("a name is text");
                let own = open.last_mut().expect("names are in objects");
                assert!(own.insert(name), "a member is there twice");
            }
            _ => {}
        }
    }
    assert_eq!(open.len(), 1, "what begins ends");
}

fn write(message: &Message) -> Bytes {
    match message {
        Message::Request(r) => request(&r.id, r.method.as_str(), r.params.as_ref()),
        Message::Notification(n) => notification(n.method.as_str(), n.params.as_ref()),
        Message::Response(r) => match &r.outcome {
            Outcome::Result(result) => response(&r.id, result),
            Outcome::Error(error) => error_response(&r.id, error),
        },
    }
}

fn read_parts(message: &Message) {
    let params = match message {
        Message::Request(r) => r.params.as_ref(),
        Message::Notification(n) => n.params.as_ref(),
        Message::Response(_) => None,
    };
    let _ = RequestMeta::of(params).log_level();
    let _ = RequestDigest::of(&Method::ToolsCall, params);
    if let Some(mut object) = params.and_then(RawObject::of) {
        object.set("_meta", RawJson::from_static("{}"));
        RawJson::parse_text(object.to_json().into_bytes()).expect("an edited object is valid JSON");
    }
    if let Some(Ok(schema)) = params.map(RawJson::read::<serde_json::Value>)
        && let Ok(headers) = ParamHeaders::of_schema(&schema)
    {
        let _ = headers.check(&schema, |_: &str| None);
    }
}

pub(crate) fn headers(data: &[u8]) {
    if let Ok(decoded) = decode_value("Mcp-Name", data) {
        expect_equal("Mcp-Name", Some(data), &decoded.0).expect("a value equals itself");
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let encoded = encode_value(text);
        assert!(
            encoded.bytes().all(|byte| (0x20..=0x7e).contains(&byte)),
            "safe in a header"
        );
        expect_equal("Mcp-Name", Some(encoded.as_bytes()), text).expect("survives");
    }
}

pub(crate) fn event_id(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(id) = text.parse::<EventId>() {
        assert_eq!(id.to_string(), text);
    }
}

pub(crate) fn sealed_state(data: &[u8]) {
    static SEALED: std::sync::LazyLock<(KeyRing, String, RequestDigest)> =
        std::sync::LazyLock::new(|| {
            let ring = KeyRing::new(vec![SealKey::from_secret(b"a secret of the test")]);
            let digest = RequestDigest::of(&Method::ToolsCall, None);
            let state = RequestState {
                principal: "p".into(),
                expires_at: u64::MAX,
                digest: digest.clone(),
                continuation: Continuation::Backend {
                    state: None,
                    call: None,
                },
            };
            let sealed = ring.seal(&state);
            (ring, sealed, digest)
        });
    let (ring, sealed, digest) = &*SEALED;
    let text = String::from_utf8_lossy(data);
    let opened = ring.open(&text, "p", digest, 0);
    assert!(opened.is_err() || text == sealed.as_str());
    let mut altered = sealed.clone().into_bytes();
    let len = altered.len();
    for (at, byte) in data.iter().enumerate().filter(|(_, byte)| **byte != 0) {
        altered[at % len] ^= byte & 0x7f;
    }
    let altered = String::from_utf8_lossy(&altered);
    assert!(ring.open(&altered, "p", digest, 0).is_err() || altered == sealed.as_str());
}

pub(crate) fn sse(data: &[u8]) {
    let Some((&cut, stream)) = data.split_first() else {
        return;
    };
    let size = usize::from(cut % 16) + 1;
    assert_eq!(events(stream, stream.len().max(1)), events(stream, size));
}

fn events(stream: &[u8], size: usize) -> (Vec<String>, bool) {
    let mut parser = SseParser::of_at_most(256);
    let mut seen = Vec::new();
    for piece in stream.chunks(size) {
        parser.feed(piece);
        loop {
            match parser.next_event() {
                Ok(Some(event)) => seen.push(format!("{event:?}")),
                Ok(None) => break,
                Err(_) => return (seen, true),
            }
        }
    }
    (seen, false)
}

pub(crate) fn trace_context(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (parent, state) = match text.split_once('\n') {
        Some((parent, state)) => (parent, Some(state)),
        None => (&*text, None),
    };
    let Some(read) = TraceContext::parse(parent, state) else {
        return;
    };
    let again = TraceContext::parse(&read.to_traceparent(), read.tracestate());
    let again = again.expect("what was written parses");
    assert_eq!(again.ids(), read.ids());
    assert_eq!(again.to_traceparent(), read.to_traceparent());
}
