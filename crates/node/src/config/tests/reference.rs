use super::super::reference::{markdown, schema};
use super::operator;

#[test]
fn the_page_in_the_repository_is_in_step() {
    let page = include_str!("../../../../../docs/configuration.md");
    assert!(
        page == markdown(),
        "run: cargo run -q -p shoal-node -- config doc > docs/configuration.md"
    );
}

#[test]
fn every_setting_is_explained() {
    let page = markdown();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let text = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        assert!(text.len() > 8 && text.contains('.'), "{row}");
    }
    for table in [
        "[server]",
        "[pools.<name>]",
        "[pools.<name>.backend.stdio]",
        "[pools.<name>.scale_to_zero]",
        "[auth.issuers.introspection]",
        "[[auth.tokens]]",
    ] {
        assert!(page.contains(&format!("## `{table}`")), "{table}");
    }
}

#[test]
fn the_example_on_the_page_can_be_used() {
    let page = markdown();
    let example = page.split("```toml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let example = example.replace("<64 digits from shoal config hash-token>", &"0".repeat(64));
    assert!(operator().file(&example).load().is_ok(), "{example}");
}

#[test]
fn the_schema_knows_every_section_and_refuses_others() {
    let schema = schema().to_value();
    assert_eq!(schema["additionalProperties"], false);
    for section in ["server", "auth", "pools", "shutdown"] {
        assert!(schema["properties"].get(section).is_some(), "{section}");
    }
}

#[test]
fn the_schema_refuses_what_the_rules_refuse_of_one_setting() {
    let schema = schema();
    let part = |table: &str, setting: &str| {
        let place = format!("/$defs/{table}/properties/{setting}");
        schema.pointer(&place).unwrap().clone()
    };
    assert_eq!(part("Calls", "attempts")["minimum"], 1);
    assert!(part("Calls", "timeout")["not"]["pattern"].is_string());
    assert!(part("PortTls", "reread")["not"]["pattern"].is_string());
}
