use std::collections::BTreeSet;

use schemars::schema_for;
use serde_json::Value;

use crate::config::Settings;

const PAGE: &str = include_str!("../../../../../docs/guarantees.md");

fn settings(at: &str, schema: &Value, root: &Value, found: &mut BTreeSet<String>) {
    let schema = match schema["$ref"].as_str() {
        Some(to) => root.pointer(&to[1..]).unwrap(),
        None => schema,
    };
    if let Some(each) = schema
        .get("additionalProperties")
        .filter(|it| it.is_object())
    {
        settings(&format!("{at}.*"), each, root, found);
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{at}.{name}");
        settings(&path, member, root, found);
        found.insert(path.trim_start_matches('.').to_owned());
    }
}

#[test]
fn the_table_of_shares_names_every_limit_of_principals_and_only_what_there_is() {
    let schema = schema_for!(Settings).to_value();
    let mut known = BTreeSet::new();
    settings("", &schema, &schema, &mut known);
    assert!(known.contains("limits.streams") && known.contains("pools.*.queue"));
    let (_, rest) = PAGE.split_once("## What one principal may hold").unwrap();
    let (section, _) = rest.split_once("\n## ").unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let mut named = BTreeSet::new();
    for row in rows.skip(1) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let [_, node, principal] = cells[..] else {
            panic!("{row}");
        };
        for cell in [node, principal] {
            let words = cell.split('`').skip(1).step_by(2);
            named.extend(words.filter(|it| !it.contains(' ')).map(str::to_owned));
        }
    }
    let unknown: Vec<_> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "no settings: {unknown:?}");
    let of_principals = known.iter().filter(|it| it.ends_with("_per_principal"));
    let missing: Vec<_> = of_principals.filter(|it| !named.contains(*it)).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
}
