use super::{Event, Parser};

fn parse(chunks: &[&[u8]]) -> Vec<Event> {
    let mut parser = Parser::default();
    for chunk in chunks {
        parser.push(chunk);
    }
    std::iter::from_fn(|| parser.pop()).collect()
}

fn event(id: Option<&str>, data: &str) -> Event {
    Event {
        id: id.map(str::to_owned),
        data: data.to_owned(),
        ..Event::default()
    }
}

#[test]
fn a_priming_event_has_an_id_and_no_data() {
    let events = parse(&[b"id: 7/0\nretry: 3000\ndata:\n\n"]);
    assert_eq!(
        events,
        [Event {
            retry_ms: Some(3000),
            ..event(Some("7/0"), "")
        }]
    );
}

#[test]
fn a_block_with_only_an_id_is_reported() {
    assert_eq!(parse(&[b"id: 3\n\n"]), [event(Some("3"), "")]);
}

#[test]
fn comments_and_unknown_fields_make_no_event() {
    assert_eq!(
        parse(&[b": keep-alive\n\n", b"colour: blue\n\n", b"\n\n"]),
        []
    );
}

#[test]
fn data_lines_are_joined_and_one_space_is_dropped() {
    let events = parse(&[b"event: message\ndata:  a\ndata:b\ndata\n\n"]);
    assert_eq!(
        events,
        [Event {
            name: Some("message".to_owned()),
            ..event(None, " a\nb\n")
        }]
    );
}

#[test]
fn an_unfinished_block_is_held_back() {
    assert_eq!(parse(&[b"id: 1\ndata: x\n"]), []);
}

#[test]
fn any_cut_and_any_line_end_gives_the_same_events() {
    let expected = [event(Some("1"), "one"), event(Some("2"), "z\u{e9}ro")];
    for line_end in ["\n", "\r", "\r\n"] {
        let body =
            "\u{feff}id: 1\ndata: one\n\n: c\n\nid: 2\ndata: z\u{e9}ro\n\n".replace('\n', line_end);
        let bytes = body.as_bytes();
        for cut in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(parse(&[head, tail]), expected, "{line_end:?} cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(parse(&single), expected, "{line_end:?} byte by byte");
    }
}

#[test]
fn an_invalid_retry_is_ignored() {
    assert_eq!(parse(&[b"retry: soon\ndata: x\n\n"]), [event(None, "x")]);
}
