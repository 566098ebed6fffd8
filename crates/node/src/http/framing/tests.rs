use super::{Framing, FramingFault};

/// The result must not depend on the size of the pieces.
#[track_caller]
fn read(text: &str) -> (Option<(u64, FramingFault)>, bool) {
    let bytes = text.as_bytes();
    let sizes = (1..=80).chain([255, 256, 257, bytes.len()]);
    let all: Vec<_> = sizes
        .map(|size| {
            let mut framing = Framing::default();
            let faults = bytes.chunks(size).filter_map(|piece| framing.read(piece));
            let faults: Vec<_> = faults.collect();
            assert!(faults.len() < 2, "{text:?} in pieces of {size}: {faults:?}");
            (faults.first().copied(), framing.is_amid())
        })
        .collect();
    assert!(all.iter().all(|one| one == &all[0]), "{text:?}: {all:?}");
    all[0]
}

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn sound_requests_follow_one_another() {
    for request in [
        GET,
        "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\na\n\nbc",
        "POST / HTTP/1.1\r\ncontent-length:0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\na\n\nbc\r\nA \r\n0123456789\r\n00\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: y\r\nz: a\r\n\r\n",
    ] {
        assert_eq!(read(request), (None, false), "{request:?}");
        assert_eq!(
            read(&format!("{request}{GET}{request}")),
            (None, false),
            "{request:?}"
        );
        let bad = format!("{request}GET / HTTP/1.1\nHost: x\r\n\r\n");
        assert_eq!(
            read(&bad).0,
            Some((1, FramingFault::BareLineFeed)),
            "{request:?}"
        );
        assert!(read(&request[..request.len() - 1]).1, "{request:?}");
    }
    assert_eq!(read("GET / HTT"), (None, true));
}

#[test]
fn what_others_could_read_differently_is_found() {
    for (head, fault) in [
        (
            "GET / HTTP/1.1\nHost: x\r\n\r\n",
            FramingFault::BareLineFeed,
        ),
        (
            "GET / HTTP/1.1\r\nHost: x\n\r\n",
            FramingFault::BareLineFeed,
        ),
        (
            "GET / HTTP/1.1\r\nHost: x\r\n\n",
            FramingFault::BareLineFeed,
        ),
        ("GET / HTTP/1.1\nHost: x\n\n", FramingFault::BareLineFeed),
        (
            "\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
            FramingFault::BareLineFeed,
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            FramingFault::LengthAndCoding,
        ),
        (
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n",
            FramingFault::LengthAndCoding,
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            FramingFault::LengthTwice,
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            FramingFault::CodingTwice,
        ),
        (
            "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            FramingFault::UnknownCoding,
        ),
        (
            "POST / HTTP/1.1\r\nContent-Length: 5x\r\n\r\n",
            FramingFault::Unclear,
        ),
    ] {
        assert_eq!(read(head), (Some((0, fault)), true), "{head:?}");
        assert_eq!(
            read(&format!("{head}{GET}")),
            (Some((0, fault)), true),
            "{head:?}"
        );
    }
}

#[test]
fn what_follows_a_body_without_a_clear_end_is_unclear() {
    let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in [
        "x\r\n",
        "5\nabcde\r\n",
        "\r\n",
        "fffffffffffffffff\r\n",
        "0\r\na: b\n\r\n",
    ] {
        let text = format!("{head}{body}{GET}");
        assert_eq!(
            read(&text),
            (Some((1, FramingFault::Unclear)), true),
            "{body:?}"
        );
    }
}

#[test]
fn a_line_of_any_length_is_one_line() {
    let long = "x".repeat(5_000);
    let text = format!("GET /{long} HTTP/1.1\r\nA: {long}\r\nB: {long}\r\n\r\n");
    assert_eq!(read(&text[..]).0, None);
    let late = format!(
        "POST / HTTP/1.1\r\nContent-Length:{}5\r\n\r\nhello",
        " ".repeat(300)
    );
    assert_eq!(read(&late).0, Some((0, FramingFault::Unclear)));
    let bare = format!("GET / HTTP/1.1\r\nA: {long}\nB: {long}\r\n\r\n");
    assert_eq!(read(&bare).0, Some((0, FramingFault::BareLineFeed)));
}
