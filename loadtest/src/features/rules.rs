use super::credentials::TENANT;

pub(super) const HIDDEN: &str = "add";

const OTHERS: [&str; 7] = [
    "book_table",
    "connect_account",
    "increment_counter",
    "list_roots",
    "long_job",
    "summarize",
    "write_log",
];

/// Ten rules are a realistic number. The rule that allows the measured calls has a condition on the
/// claims or, without `claims`, on the tool.
pub(super) fn rules(claims: bool) -> String {
    let condition = if claims {
        format!("has(claims.tenant) && claims.tenant == '{TENANT}'")
    } else {
        "!target.open_world || target.name != ''".to_owned()
    };
    let mut rules = vec![
        format!(r#"{{name="calls",effect="allow",tools=["echo*"],when="{condition}"}}"#),
        r#"{name="reads",effect="allow",hints=["read-only","closed-world"]}"#.to_owned(),
        format!(r#"{{name="hidden",effect="deny",tools=["{HIDDEN}"]}}"#),
    ];
    rules.extend(OTHERS.map(|tool| {
        format!(
            r#"{{name="{tool}",effect="allow",tools=["{tool}"],when="principal.startsWith('ops-')"}}"#
        )
    }));
    format!("[{}]", rules.join(","))
}
