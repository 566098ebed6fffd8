use std::collections::{BTreeMap, BTreeSet};

use shoal_telemetry::metrics::{Attribute, Definition, Values, definitions, prometheus_names_of};

use crate::expression::{Matcher, asked};
use crate::files::{dashboards, deploy, queries, rules};

const ANYWHERE: [&str; 3] = ["instance", "job", "le"];

type Known = BTreeMap<String, &'static [Attribute]>;

fn known() -> Known {
    let of_catalogue = definitions().flat_map(|definition| {
        let names = prometheus_names_of(definition).into_iter();
        names.map(|name| (name, definition.attributes))
    });
    let recorded = rules().into_iter().filter_map(|rule| rule.record);
    let others = recorded.chain(["up".to_owned()]);
    let nothing: &'static [Attribute] = &[];
    of_catalogue
        .chain(others.map(|name| (name, nothing)))
        .collect()
}

fn wrong_label(attributes: &[Attribute], label: &str, values: &[String]) -> Option<String> {
    if ANYWHERE.contains(&label) {
        return None;
    }
    let attribute = attributes
        .iter()
        .find(|attribute| attribute.key.replace('.', "_") == label);
    let Some(attribute) = attribute else {
        return Some(format!("no label {label}"));
    };
    let Values::OneOf { values: known, .. } = attribute.values else {
        return None;
    };
    let is_known = |value: &String| value.is_empty() || known.contains(&value.as_str());
    let unknown = values.iter().find(|value| !is_known(value));
    unknown.map(|value| format!("{label} is never {value}"))
}

fn wrong(at: &str, expr: &str, known: &Known) -> Vec<String> {
    let asked = asked(expr);
    assert!(!asked.metrics.is_empty(), "{at} asks for nothing: {expr}");
    let mut wrong = Vec::new();
    let mut all = Vec::new();
    for (name, labels) in &asked.metrics {
        match known.get(name) {
            Some(attributes) => {
                all.extend_from_slice(attributes);
                let check = |(label, values): &Matcher| wrong_label(attributes, label, values);
                wrong.extend(labels.iter().filter_map(check));
            }
            None => wrong.push(format!("no metric {name}")),
        }
    }
    let groups = asked.groups.iter();
    wrong.extend(groups.filter_map(|label| wrong_label(&all, label, &[])));
    wrong.iter().map(|it| format!("{at}: {it}")).collect()
}

#[test]
fn alerts_ask_for_what_is_in_the_catalogue() {
    let known = known();
    let wrong: Vec<_> = rules()
        .iter()
        .flat_map(|rule| wrong(rule.name(), &rule.expr, &known))
        .collect();
    assert!(wrong.is_empty(), "not as in docs/metrics.md: {wrong:#?}");
}

#[test]
fn dashboards_ask_for_what_is_in_the_catalogue() {
    let known = known();
    let wrong: Vec<_> = queries()
        .iter()
        .flat_map(|query| wrong(&query.at, &query.expr, &known))
        .collect();
    assert!(wrong.is_empty(), "not as in docs/metrics.md: {wrong:#?}");
}

#[test]
fn every_metric_is_on_a_dashboard() {
    let queries = queries();
    let shown = queries.iter().flat_map(|query| asked(&query.expr).metrics);
    let shown: BTreeSet<String> = shown.map(|(name, _)| name).collect();
    let is_shown = |definition: &&Definition| {
        let names = prometheus_names_of(definition);
        names.iter().any(|name| shown.contains(name))
    };
    let hidden = definitions().filter(|definition| !is_shown(definition));
    let hidden: Vec<&str> = hidden.map(|definition| definition.name).collect();
    assert!(hidden.is_empty(), "on no dashboard: {hidden:#?}");
}

#[test]
fn every_alert_says_what_it_means_and_what_to_do() {
    let rules = rules();
    let alerts: Vec<_> = rules.iter().filter(|rule| rule.alert.is_some()).collect();
    assert!(alerts.len() > 10, "{}", alerts.len());
    let mut names = BTreeSet::new();
    for alert in alerts {
        let name = alert.name();
        assert!(names.insert(name), "{name} is there twice");
        let severity = alert.labels.get("severity").map(String::as_str);
        assert!(
            matches!(severity, Some("critical" | "warning")),
            "{name}: {severity:?}"
        );
        for key in ["summary", "description", "action", "runbook_url"] {
            let said = alert.annotations.get(key).map_or("", |it| it.trim());
            assert!(said.len() > 10, "{name} has no {key}");
        }
    }
}

/// `runbook_url` must link to a section with the alert's name, description and action.
#[test]
fn every_alert_has_its_place_in_the_guide() {
    let guide = std::fs::read_to_string(deploy("../docs/telemetry.md")).unwrap();
    let guide = one_line(&guide);
    for rule in rules().iter().filter(|rule| rule.alert.is_some()) {
        let name = rule.name();
        let said = |key: &str| one_line(&rule.annotations[key]);
        let section = format!(
            "#### {name} {} **Do:** {}",
            said("description"),
            said("action")
        );
        assert!(guide.contains(&section), "not in the guide: {section}");
        let fragment = format!("docs/telemetry.md#{}", name.to_lowercase());
        assert!(said("runbook_url").ends_with(&fragment), "{name}");
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn dashboards_can_be_told_apart_and_find_their_data() {
    let dashboards = dashboards();
    let mut ids = BTreeSet::new();
    for (file, dashboard) in &dashboards {
        assert!(
            ids.insert(dashboard["uid"].as_str().unwrap()),
            "{file}: uid"
        );
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        let named = |name: &str| variables.iter().any(|it| it["name"] == name);
        assert!(named("datasource") && named("node"), "{file}");
        let text = dashboard.to_string();
        assert!(!text.contains("${DS_"), "{file} asks for a data source");
    }
    assert_eq!(ids.len(), 4);
}
