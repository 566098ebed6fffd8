use super::{Comparison, Judgement, against};
use crate::outcome::{Better, Outcome};
use crate::result::read::Named;

fn named(name: &str, figures: &[(&str, f64, Better)]) -> Named {
    let mut outcome = Outcome::begin("load", "made up");
    outcome
        .parameters
        .insert("mode".to_owned(), name.to_owned());
    for (name, value, better) in figures {
        outcome.figure(*name, *value, "µs", *better);
    }
    Named {
        name: name.to_owned(),
        outcome,
    }
}

#[test]
fn each_figure_is_judged_by_which_way_is_good() {
    let judge = |first, value, better| against(first, value, better).judgement;
    assert_eq!(judge(10.0, 9.0, Better::Lower), Judgement::Better);
    assert_eq!(judge(10.0, 9.0, Better::Higher), Judgement::Worse);
    assert_eq!(judge(10.0, 10.1, Better::Lower), Judgement::Same);
    assert_eq!(judge(10.0, 99.0, Better::Neither), Judgement::None);
    assert_eq!(judge(0.0, 0.0, Better::Lower), Judgement::Same);
    assert_eq!(judge(0.0, 1.0, Better::Lower), Judgement::Worse);
}

#[test]
fn what_one_result_lacks_is_shown_as_missing_and_not_judged() {
    let a = named(
        "a",
        &[("cpu", 10.0, Better::Lower), ("only a", 1.0, Better::Lower)],
    );
    let b = named(
        "b",
        &[("cpu", 5.0, Better::Lower), ("only b", 1.0, Better::Lower)],
    );
    let mut b = b;
    b.outcome.scenario = "idle".to_owned();
    let comparison = Comparison::of(&[a, b]);
    let text = comparison.to_string();
    assert_eq!(comparison.lines.len(), 4);
    assert_eq!(comparison.lines[1][3], "0.50 × better");
    assert!(comparison.lines[2][3].is_empty() && comparison.lines[3][3].is_empty());
    assert!(text.contains("0.50 × better"), "{text}");
    assert!(text.contains("NOT ALIKE: mode is a | b"), "{text}");
    assert!(
        text.contains("NOT ALIKE: scenario is load | idle"),
        "{text}"
    );
}
