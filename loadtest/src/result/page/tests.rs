use super::{Named, of_comparison, of_results};
use crate::outcome::{Better, Distribution, Mark, Outcome, Series, Verdict, Violation};
use crate::result::compare::Comparison;

fn named(name: &str) -> Named {
    let mut outcome = Outcome::begin("load", "echo <script>alert(1)</script>");
    outcome.figure("calls a second", 1_500.0, "1/s", Better::Higher);
    outcome.latencies.push(Distribution {
        name: "latency of a call".to_owned(),
        count: 3,
        mean_us: 200.0,
        quantiles_us: vec![(0.0, 100.0), (0.5, 200.0), (0.99, 900.0), (1.0, 1_000.0)],
    });
    outcome.series.push(Series {
        name: "throughput".to_owned(),
        unit: "calls/s".to_owned(),
        points: vec![(1.0, 1_000.0), (2.0, 2_000.0)],
    });
    outcome.marks.push(Mark {
        at_s: 1.5,
        what: "node killed".to_owned(),
    });
    outcome.violations.push(Violation {
        what: "wrong answer: echo".to_owned(),
        count: 2,
        example: "\"a\" & not <b>".to_owned(),
    });
    outcome.verdicts.push(Verdict {
        what: "p99 1 ms: at most 2 ms".to_owned(),
        held: Some(true),
    });
    Named {
        name: name.to_owned(),
        outcome,
    }
}

#[test]
fn the_page_has_every_part_of_a_result_and_nothing_from_elsewhere() {
    let page = of_results(&[named("one")]);
    for part in [
        "<b>1\u{202f}500 1/s</b>",
        "wrong answer: echo, 2 times, first: &quot;a&quot; &amp; not &lt;b&gt;",
        "<b>Held</b>: p99 1 ms: at most 2 ms",
        "1.50 s: node killed",
        "latency of a call (3)",
        "<td>2\u{202f}000</td>",
    ] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    assert_eq!(page.matches("<svg class=\"plot\"").count(), 2);
    for foreign in ["<script", "http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign} in {page}");
    }
}

#[test]
fn points_lie_where_their_values_are() {
    let page = of_results(&[named("one")]);
    // 1,000 of 0 to 2,000 calls per second is half-way up: 240 − 0.5 × 222; second 1 of 0 to 2 is
    // half-way between 64 and 624.
    assert!(page.contains("d=\"M344.0 129.0L624.0 18.0\""), "{page}");
}

#[test]
fn a_comparison_shows_the_results_over_one_another() {
    let results = [named("before"), named("after")];
    let page = of_comparison(&Comparison::of(&results), &results);
    assert!(
        page.contains("over before") && page.contains("1.00 × same"),
        "{page}"
    );
    assert_eq!(page.matches("<h2>").count(), 2);
    assert_eq!(page.matches("<svg class=\"plot\"").count(), 5);
}
