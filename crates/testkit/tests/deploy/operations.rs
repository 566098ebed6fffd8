//! The pages on running Shoal name alerts, metrics and settings that exist.

use std::collections::BTreeSet;
use std::fs;

use shoal_telemetry::metrics::{definitions, prometheus_names_of};

use crate::files::{deploy, rules};

fn operations() -> String {
    let names = [
        "operations.md",
        "rollouts.md",
        "recovery.md",
        "scaling.md",
        "troubleshooting.md",
    ];
    names.map(page).concat()
}

fn page(name: &str) -> String {
    fs::read_to_string(deploy("../docs").join(name)).unwrap()
}

fn links(page: &str) -> Vec<&str> {
    let rest = page.split("](").skip(1);
    rest.map(|rest| rest.split(')').next().unwrap()).collect()
}

fn code(page: &str) -> Vec<&str> {
    let lines = page.lines();
    lines
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .collect()
}

#[test]
fn every_alert_is_a_symptom() {
    let operations = operations();
    let linked: BTreeSet<&str> = links(&operations).into_iter().collect();
    for rule in rules().iter().filter(|rule| rule.alert.is_some()) {
        let link = format!("telemetry.md#{}", rule.name().to_lowercase());
        assert!(linked.contains(link.as_str()), "nothing leads to {link}");
    }
}

#[test]
fn metrics_exist() {
    let known: BTreeSet<String> = definitions().flat_map(prometheus_names_of).collect();
    let operations = operations();
    let mut named = 0;
    for code in code(&operations) {
        let name = code.split('{').next().unwrap();
        let is_metric = name.starts_with("shoal_") || name.starts_with("http_server_");
        if !is_metric {
            continue;
        }
        // The pages name histograms without suffixes, as docs/metrics.md does.
        let bucket = format!("{name}_bucket");
        assert!(known.contains(name) || known.contains(&bucket), "{code}");
        named += 1;
    }
    assert!(named > 10, "{named}");
}

#[test]
fn settings_exist() {
    let reference = page("configuration.md");
    let operations = operations();
    let mut named = 0;
    for code in code(&operations) {
        // The pages show some names with a value.
        let name = code.split(' ').next().unwrap();
        let Some((section, key)) = name.rsplit_once('.') else {
            continue;
        };
        let heading = format!("\n## `[{section}]`\n");
        let Some(start) = reference.find(&heading) else {
            continue;
        };
        let text = &reference[start + heading.len()..];
        let text = &text[..text.find("\n## ").unwrap_or(text.len())];
        assert!(text.contains(&format!("`{key}`")), "{code}");
        named += 1;
    }
    assert!(named > 30, "{named}");
}
