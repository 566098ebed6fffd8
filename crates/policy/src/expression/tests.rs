use serde_json::{Value, json};
use shoal_protocol::RawJson;

use super::Expression;
use crate::subject::{KnownSubject, Subject};
use crate::target::{Annotations, Target, TargetKind};

fn met(source: &str, claims: &Value) -> Result<bool, String> {
    let claims = RawJson::of(claims);
    let client = RawJson::of(&json!({ "name": "editor", "version": "2.1", "icons": [] }));
    let subject = Subject {
        principal: "ann",
        scopes: &["read".into(), "write".into()],
        claims: Some(&claims),
        client: Some(&client),
        read: None,
    };
    let item = RawJson::of(&json!({ "annotations": { "readOnlyHint": true, "title": "T" } }));
    let target = Target {
        kind: TargetKind::Tool,
        name: "billing_list",
        pool: "billing",
        item: Some(&item),
        catalog: 0,
    };
    let subject = KnownSubject::read(&subject, 0, 0);
    let expression = Expression::compile(source).map_err(|error| error.to_string())?;
    expression.is_met(&subject, &target, &Annotations::of(&target))
}

#[test]
fn expressions_see_who_asks_and_what_for() {
    let claims = json!({
        "iss": "https://id.example", "department": "finance", "level": 3, "groups": ["a", "b"], "big": 1.5,
    });
    for source in [
        r#"principal == "ann""#,
        r#"issuer == "https://id.example""#,
        r#""write" in scopes"#,
        r#"claims.department == "finance" && claims.level >= 3 && claims.level + 1 == 4"#,
        r#"claims.groups.exists(group, group == "b")"#,
        r#"has(claims.department) && !has(claims.missing)"#,
        r#"client.name == "editor" && client.version.startsWith("2.")"#,
        r#"target.kind == "tool" && target.name.startsWith(target.pool)"#,
        "target.read_only && !target.destructive && target.idempotent && target.open_world",
        r#"target.annotations.title == "T""#,
        r#"target.name.matches("^[a-z_]+$")"#,
        r#"size(scopes) == 2 && claims["big"] < 2.0"#,
        r#"["a", "c"].filter(it, it in claims.groups).size() == 1"#,
    ] {
        assert_eq!(met(source, &claims), Ok(true), "{source}");
    }
    assert_eq!(met(r#"claims.department == "sales""#, &claims), Ok(false));
}

#[test]
fn what_cannot_be_evaluated_is_an_error() {
    let claims = json!({});
    for source in [
        r#"claims.department == "finance""#,
        "claims.level > 3",
        r#"principal > 3"#,
        "1 / 0 == 1",
    ] {
        assert!(met(source, &claims).is_err(), "{source}");
    }
}

#[test]
fn mistakes_are_found_when_they_are_loaded_with_their_place() {
    let error = |source: &str| Expression::compile(source).unwrap_err();
    let found = |source: &str| {
        (
            error(source).line,
            error(source).column,
            error(source).reason,
        )
    };
    for (source, line, column, reason) in [
        (
            "principal == prinzipal",
            1,
            14,
            "there is no variable \"prinzipal\"",
        ),
        (
            "true &&\n  claim.a == 1",
            2,
            3,
            "there is no variable \"claim\"",
        ),
        (
            r#"frobnicate(principal)"#,
            1,
            11,
            "there is no function \"frobnicate\"",
        ),
        ("target.nme == principal", 1, 7, "target has no \"nme\""),
        ("client.nmae == principal", 1, 7, "client has no \"nmae\""),
        (
            r#"true && principal.matches("(a")"#,
            1,
            26,
            "the pattern of matches cannot be used: regex parse error",
        ),
        ("principal", 1, 1, "it is neither true nor false"),
        ("true && target.name", 1, 15, "it is neither true nor false"),
        ("!size(scopes)", 1, 6, "it is neither true nor false"),
        ("true ? [true] : true", 1, 8, "it is neither true nor false"),
    ] {
        let (at_line, at_column, said) = found(source);
        assert!(said.starts_with(reason), "{source}: {said}");
        assert_eq!((at_line, at_column), (line, column), "{source}");
    }
    for source in ["principal ==", "principal = 3", "'open", "", "a b"] {
        let (line, _, reason) = found(source);
        assert!(line == 1 && !reason.is_empty(), "{source}: {reason}");
    }
}

#[test]
fn what_would_cost_too_much_is_refused_when_it_is_loaded() {
    let deep = format!("{}true{}", "(".repeat(500), ")".repeat(500));
    let negated = format!("{}true", "! ".repeat(1500));
    let long = format!("principal == '{}'", "x".repeat(5000));
    let choice = format!("{}true", "false ? false : ".repeat(200));
    let sum = format!("1{} == 1", " + 1".repeat(900));
    let walks = "claims.a.all(a, claims.a.all(b, claims.a.all(c, a == b && b == c)))";
    let pattern = "target.name.matches(principal)";
    for source in [&deep, &long, &choice, &sum, walks, pattern] {
        assert!(Expression::compile(source).is_err(), "{source:.60}");
    }
    let parted = "[".repeat(4000);
    let asked = "true?".repeat(800);
    let bare = "!(".repeat(2000);
    for source in [
        &negated,
        &parted,
        &asked,
        &bare,
        &"(".repeat(4000),
        &"-".repeat(4000),
    ] {
        let _ = Expression::compile(source);
    }
    assert!(Expression::compile("claims.a.all(a, claims.a.all(b, a == b))").is_ok());
}

#[test]
fn the_deepest_expression_takes_no_more_stack_than_there_is() {
    let half = std::thread::Builder::new().stack_size(1 << 20);
    let evaluated = half.spawn(|| {
        let chain = format!("true{}", " == true".repeat(23));
        assert_eq!(met(&chain, &json!({})), Ok(true));
        assert!(met(&format!("{chain} == true"), &json!({})).is_err());
        let walks = "scopes.all(a, scopes.all(b, a.contains(a) && (a == b || a != b)))";
        assert_eq!(met(walks, &json!({})), Ok(true));
    });
    evaluated.unwrap().join().unwrap();
}

#[test]
fn claims_beyond_the_limits_are_not_walked_along() {
    let many: Vec<u32> = (0..1000).collect();
    assert!(met("claims.a.all(a, a >= 0)", &json!({ "a": many })).is_err());
    assert!(met("size(claims) == 1", &json!({ "a": "x".repeat(40_000) })).is_err());
    assert_eq!(met("principal == 'ann'", &json!({ "a": many })), Ok(true));
}

#[test]
fn what_an_expression_looks_at_is_known() {
    let reads = |source: &str| {
        let it = Expression::compile(source).unwrap();
        (it.reads_grant(), it.reads_client(), it.reads_target())
    };
    assert_eq!(reads("principal == 'a'"), (false, false, false));
    assert_eq!(reads("issuer == 'a'"), (true, false, false));
    assert_eq!(
        reads("scopes.exists(client, client == 'a')"),
        (true, false, false)
    );
    assert_eq!(reads("client.name == target.name"), (false, true, true));
}
