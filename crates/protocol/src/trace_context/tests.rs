use super::TraceContext;

const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn what_was_read_is_written_again() {
    for flags in ["00", "01"] {
        let text = format!("{}{flags}", &GOOD[..53]);
        let context = TraceContext::parse(&text, Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"))
            .expect("a good context");
        assert_eq!(context.to_traceparent(), text);
        assert_eq!(context.is_sampled(), flags == "01");
        assert_eq!(
            context.tracestate(),
            Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")
        );
        assert_eq!(context.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id(), "00f067aa0ba902b7");
    }
}

#[test]
fn a_later_version_is_read_as_far_as_it_is_known() {
    for text in [
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-the-future-holds",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff",
        "\t00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 ",
    ] {
        let context = TraceContext::parse(text, None).expect(text);
        assert_eq!(context.to_traceparent(), GOOD);
    }
}

#[test]
fn broken_contexts_are_none() {
    for text in [
        "",
        "00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.what",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473x-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e47-3600f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-+1",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902é-01",
    ] {
        assert_eq!(TraceContext::parse(text, None), None, "{text}");
    }
}

#[test]
fn a_broken_state_is_dropped_alone() {
    let long = format!("a={}", "x".repeat(600));
    let many = vec!["a=b"; 33].join(",");
    for state in [
        "", " , ", "novalue", "a=", "=b", "A=b", "a=b=c", "a=é", &long, &many,
    ] {
        let context = TraceContext::parse(GOOD, Some(state)).expect("a good parent");
        assert_eq!(context.tracestate(), None, "{state}");
    }
}

#[test]
fn a_trusted_context_differs_in_its_decision_only() {
    let foreign = TraceContext::parse(GOOD, None).expect("good");
    let trusted = TraceContext::parse_trusted(GOOD, None).expect("good");
    assert!(foreign.is_foreign() && !trusted.is_foreign());
    assert_eq!(foreign.to_traceparent(), trusted.to_traceparent());
}
