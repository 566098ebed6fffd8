//! The examples of `docs/policy.md` are valid.
#![allow(clippy::unwrap_used, reason = "a failed test is the report")]

use shoal_policy::{Cases, Policy, Rule};

const PAGE: &str = include_str!("../../../docs/policy.md");

fn blocks() -> impl Iterator<Item = &'static str> {
    let parts = PAGE.split("```toml\n").skip(1);
    parts.map(|part| part.split("```").next().unwrap())
}

#[test]
fn the_examples_pass_their_cases() {
    let examples: Vec<&str> = blocks().filter(|text| text.contains("[[cases]]")).collect();
    assert_eq!(examples.len(), 6);
    for text in examples {
        let example: Cases = toml::from_str(text).unwrap();
        let policy = Policy::compile(&example.rules).unwrap();
        assert!(example.cases.len() >= 3, "{text}");
        for (at, case) in example.cases.iter().enumerate() {
            let outcome = case.run(&policy, at + 1).unwrap();
            assert!(outcome.passed && !outcome.failed, "{outcome:?}\n{text}");
        }
    }
}

#[test]
fn a_case_that_expects_something_else_fails() {
    let example = blocks().find(|text| text.contains("[[cases]]")).unwrap();
    for (right, wrong) in [
        ("expect = \"deny\"", "expect = \"allow\""),
        ("rule = \"everybody reads\"", "rule = \"operators\""),
    ] {
        let turned: Cases = toml::from_str(&example.replace(right, wrong)).unwrap();
        let policy = Policy::compile(&turned.rules).unwrap();
        let passed =
            |(at, case): (usize, &shoal_policy::Case)| case.run(&policy, at).unwrap().passed;
        assert!(!turned.cases.iter().enumerate().all(passed), "{wrong}");
    }
}

#[test]
fn rules_can_be_written_as_the_page_begins() {
    let first = blocks().next().unwrap().replace("policy.rules", "rules");
    let rules: Vec<Rule> = toml::from_str::<shoal_policy::RulesFile>(&first)
        .unwrap()
        .rules
        .unwrap();
    assert!(Policy::compile(&rules).is_ok());
}
