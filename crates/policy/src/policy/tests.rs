use std::sync::Arc;

use serde_json::{Value, json};
use shoal_ports::Memo;
use shoal_protocol::RawJson;

use super::Policy;
use crate::config::RulesFile;
use crate::subject::Subject;
use crate::target::{Target, TargetKind};

fn policy(text: &str) -> Policy {
    let file: RulesFile = toml::from_str(text).unwrap();
    Policy::compile(&file.rules.unwrap_or_default()).unwrap()
}

fn error(text: &str) -> String {
    let file: RulesFile = toml::from_str(text).unwrap();
    Policy::compile(&file.rules.unwrap_or_default())
        .unwrap_err()
        .to_string()
}

fn target(kind: TargetKind, name: &str) -> Target<'_> {
    Target {
        kind,
        name,
        pool: "p",
        item: None,
        catalog: 0,
    }
}

fn tool(name: &str) -> Target<'_> {
    target(TargetKind::Tool, name)
}

fn by(principal: &str) -> Subject<'_> {
    Subject {
        principal,
        ..Subject::default()
    }
}

fn decided(policy: &Policy, subject: &Subject<'_>, target: &Target<'_>) -> (bool, Option<String>) {
    let decision = policy.decide(&policy.subject(subject), target);
    let again = policy.decide(&policy.subject(subject), target);
    assert_eq!(decision, again);
    (
        decision.allowed,
        policy.rule(decision).map(|name| name.to_string()),
    )
}

#[test]
fn without_rules_everything_may_be_used_and_with_one_nothing_else() {
    assert!(decided(&policy(""), &by("ann"), &tool("t")).0);
    let one = policy("[[rules]]\nname = 'a'\neffect = 'allow'\ntools = ['read_*']\n");
    assert_eq!(
        decided(&one, &by("ann"), &tool("read_file")),
        (true, Some("a".into()))
    );
    assert_eq!(
        decided(&one, &by("ann"), &tool("write_file")),
        (false, None)
    );
    let prompt = target(TargetKind::Prompt, "read_file");
    assert_eq!(decided(&one, &by("ann"), &prompt), (false, None));
}

#[test]
fn a_rule_that_denies_wins_wherever_it_stands() {
    for (first, second) in [("allow", "deny"), ("deny", "allow")] {
        let both = policy(&format!(
            "[[rules]]\nname = 'one'\neffect = '{first}'\n[[rules]]\nname = 'two'\neffect = '{second}'\n"
        ));
        let (allowed, rule) = decided(&both, &by("ann"), &tool("t"));
        let denying = if first == "deny" { "one" } else { "two" };
        assert_eq!((allowed, rule.as_deref()), (false, Some(denying)));
    }
}

#[test]
fn a_rule_that_asks_stands_between_those_that_deny_and_allow() {
    let rule = |effect: &str, more: &str| {
        format!("[[rules]]\nname = '{effect}'\neffect = '{effect}'\n{more}\n")
    };
    let of = |rules: &[String]| {
        let policy = policy(&rules.concat());
        let decision = policy.decide(&policy.subject(&by("ann")), &tool("t"));
        let name = policy
            .rule(decision)
            .map(|name| name.to_string())
            .unwrap_or_default();
        (decision.allowed, decision.asks, name)
    };
    let (allow, ask, deny) = (rule("allow", ""), rule("ask", ""), rule("deny", ""));
    let asks = (true, true, "ask".to_owned());
    assert_eq!(of(std::slice::from_ref(&ask)), asks);
    assert_eq!(of(&[ask.clone(), allow.clone()]), asks);
    assert_eq!(of(&[allow.clone(), ask.clone()]), asks);
    for all in [
        [deny.clone(), ask.clone(), allow.clone()],
        [allow.clone(), ask.clone(), deny],
    ] {
        assert_eq!(of(&all), (false, false, "deny".to_owned()));
    }
    let broken = rule("ask", "when = 'claims.x == 1'");
    assert_eq!(
        of(std::slice::from_ref(&broken)),
        (false, false, String::new())
    );
    assert_eq!(of(&[allow.clone(), broken.clone()]), asks);
    assert_eq!(of(&[broken, allow]), asks);
    let policy = policy(&ask);
    for kind in [
        TargetKind::Prompt,
        TargetKind::Resource,
        TargetKind::ResourceTemplate,
    ] {
        let decision = policy.decide(&policy.subject(&by("ann")), &target(kind, "x"));
        assert!(!decision.allowed && !decision.asks);
    }
}

#[test]
fn everything_that_a_rule_says_must_hold() {
    let policy = policy(
        "[[rules]]\nname = 'a'\neffect = 'allow'\nprincipals = ['ann', 'team-*']\nscopes = ['files:*']\n\
         pools = ['p']\ntools = ['read_*']\nhints = ['read-only']\nwhen = 'claims.level > 1'\n",
    );
    let item = RawJson::of(&json!({ "annotations": { "readOnlyHint": true } }));
    let claims = RawJson::of(&json!({ "level": 2 }));
    let scopes: [Arc<str>; 2] = ["other".into(), "files:read".into()];
    let subject = Subject {
        principal: "team-a",
        scopes: &scopes,
        claims: Some(&claims),
        client: None,
        read: None,
    };
    let good = Target {
        item: Some(&item),
        ..tool("read_file")
    };
    let may = |subject: &Subject<'_>, target: &Target<'_>| decided(&policy, subject, target).0;
    assert!(may(&subject, &good));
    assert!(!may(
        &Subject {
            principal: "bob",
            ..subject
        },
        &good
    ));
    assert!(!may(
        &Subject {
            scopes: &scopes[..1],
            ..subject
        },
        &good
    ));
    assert!(!may(
        &Subject {
            claims: None,
            ..subject
        },
        &good
    ));
    assert!(!may(
        &subject,
        &Target {
            pool: "q",
            catalog: 1,
            ..good
        }
    ));
    assert!(!may(
        &subject,
        &Target {
            item: None,
            catalog: 2,
            ..good
        }
    ));
    assert!(!may(
        &subject,
        &Target {
            name: "stat",
            ..good
        }
    ));
}

#[test]
fn hints_are_what_a_tool_says_or_what_mcp_says_for_it() {
    let denied = |hint: &str, annotations: Value| {
        let policy = policy(&format!(
            "[[rules]]\nname = 'all'\neffect = 'allow'\n\
             [[rules]]\nname = 'no'\neffect = 'deny'\nhints = ['{hint}']\n"
        ));
        let prompt = target(TargetKind::Prompt, "t");
        assert!(
            decided(&policy, &by("ann"), &prompt).0,
            "hints apply only to tools"
        );
        let item = RawJson::of(&json!({ "annotations": annotations }));
        let target = Target {
            item: Some(&item),
            ..tool("t")
        };
        !decided(&policy, &by("ann"), &target).0
    };
    assert!(denied("destructive", json!({})));
    assert!(denied("writes", json!({})));
    assert!(denied("open-world", json!({})));
    assert!(!denied("destructive", json!({ "readOnlyHint": true })));
    assert!(!denied("destructive", json!({ "destructiveHint": false })));
    assert!(denied(
        "not-destructive",
        json!({ "destructiveHint": false })
    ));
    assert!(denied("idempotent", json!({ "idempotentHint": true })));
    assert!(denied("closed-world", json!({ "openWorldHint": false })));
    assert!(denied("read-only", json!({ "readOnlyHint": true })));
    assert!(!denied("read-only", json!({ "readOnlyHint": "yes" })));
}

#[test]
fn a_rule_that_fails_opens_nothing() {
    let rule = |effect: &str| {
        format!("[[rules]]\nname = '{effect}'\neffect = '{effect}'\nwhen = 'claims.level > 1'\n")
    };
    let all = "[[rules]]\nname = 'all'\neffect = 'allow'\n";
    let allowing = policy(&rule("allow"));
    let known = allowing.subject(&by("ann"));
    let decision = allowing.decide(&known, &tool("t"));
    assert!(!decision.allowed && decision.failed);
    assert!(allowing.decide(&known, &tool("u")).failed);
    let denying = policy(&format!("{all}{}", rule("deny")));
    let decision = denying.decide(&denying.subject(&by("ann")), &tool("t"));
    assert!(!decision.allowed && decision.failed);
    assert_eq!(denying.rule(decision).map(|name| &**name), Some("deny"));
}

#[test]
fn decisions_are_told_apart_by_all_that_rules_look_at() {
    let policy = policy(
        "[[rules]]\nname = 'c'\neffect = 'allow'\nwhen = 'client.name == \"good\"'\n\
         [[rules]]\nname = 's'\neffect = 'allow'\nscopes = ['all']\n\
         [[rules]]\nname = 'l'\neffect = 'allow'\nwhen = 'has(claims.a)'\n",
    );
    let client = |name: &str| RawJson::of(&json!({ "name": name, "version": "1" }));
    let (good, bad) = (client("good"), client("bad"));
    let claims = RawJson::of(&json!({ "a": 1 }));
    let scopes: [Arc<str>; 1] = ["all".into()];
    let may = |subject: &Subject<'_>| decided(&policy, subject, &tool("t")).0;
    assert!(!may(&by("ann")));
    assert!(may(&Subject {
        client: Some(&good),
        read: None,
        ..by("ann")
    }));
    assert!(!may(&Subject {
        client: Some(&bad),
        read: None,
        ..by("ann")
    }));
    assert!(may(&Subject {
        scopes: &scopes,
        ..by("ann")
    }));
    assert!(may(&Subject {
        claims: Some(&claims),
        ..by("ann")
    }));
    assert!(!may(&by("ann")));
}

#[test]
fn what_rules_do_not_look_at_tells_nobody_apart() {
    let policy = policy("[[rules]]\nname = 'a'\neffect = 'allow'\n");
    let client = RawJson::of(&json!({ "name": "x", "version": "1" }));
    let scopes: [Arc<str>; 1] = ["all".into()];
    let one = policy.subject(&by("ann"));
    let other = policy.subject(&Subject {
        client: Some(&client),
        read: None,
        scopes: &scopes,
        claims: Some(&client),
        ..by("ann")
    });
    assert!(Arc::ptr_eq(&one, &other));
    assert!(!Arc::ptr_eq(&one, &policy.subject(&by("bob"))));
}

#[test]
fn resources_that_are_denied_are_so_in_any_case() {
    let policy = policy(
        "[[rules]]\nname = 'all'\neffect = 'allow'\nresources = ['file:///Docs/*']\n\
         [[rules]]\nname = 'no'\neffect = 'deny'\nresources = ['file:///Docs/Secret*']\n",
    );
    let may = |uri: &str| {
        let resource = target(TargetKind::Resource, uri);
        decided(&policy, &by("ann"), &resource).0
    };
    assert!(may("file:///Docs/a"));
    assert!(!may("file:///Docs/Secret") && !may("file:///Docs/SECRET/a"));
    assert!(!may("file:///docs/a"));
    let template = target(TargetKind::ResourceTemplate, "file:///Docs/{path}");
    assert!(decided(&policy, &by("ann"), &template).0);
}

#[test]
fn rules_that_cannot_be_used_are_refused_by_name() {
    let rule = |more: &str| format!("[[rules]]\nname = 'r'\neffect = 'allow'\n{more}\n");
    for (text, reason) in [
        (
            rule("when = 'principal == '"),
            "the rule \"r\": when: line 1, column",
        ),
        (rule("tools = ['']"), "empty entry"),
        (
            rule("prompts = ['a']\nhints = ['read-only']"),
            "hints apply only to tools",
        ),
        (
            rule("prompts = ['a']").replace("allow", "ask"),
            "works only for tools",
        ),
        (
            "[[rules]]\nname = ''\neffect = 'allow'\n".to_owned(),
            "a name has",
        ),
        (rule("") + &rule(""), "another rule has the same name"),
    ] {
        let said = error(&text);
        assert!(said.contains(reason), "{text}: {said}");
    }
    assert!(
        toml::from_str::<RulesFile>("[[rules]]\nname = 'r'\neffect = 'allow'\ntool = ['x']")
            .is_err()
    );
}

#[test]
fn the_fingerprint_is_that_of_the_rules() {
    let of = |text: &str| policy(text).fingerprint();
    let one = "[[rules]]\nname = 'a'\neffect = 'allow'\n";
    assert_eq!(of(one), of(&format!("# a remark\n{one}")));
    assert_ne!(of(one), of(&one.replace("allow", "deny")));
}

#[test]
fn what_is_kept_is_bounded() {
    let policy = policy("[[rules]]\nname = 'a'\neffect = 'allow'\nwhen = 'has(claims.x)'\n");
    for at in 0..200 {
        let claims = RawJson::of(&json!({ "x": at, "y": "z".repeat(30_000) }));
        let known = policy.subject(&Subject {
            claims: Some(&claims),
            ..by("ann")
        });
        for uri in 0..10 {
            let name = format!("{uri}{}", "u".repeat(16_000));
            let target = target(TargetKind::Resource, &name);
            assert!(policy.decide(&known, &target).allowed);
        }
    }
    assert!(policy.subjects.weight() <= super::SUBJECT_BYTES);
    assert!(policy.decisions.weight() <= super::DECISION_BYTES);
    assert!(policy.subjects.len() < 200 && policy.decisions.len() < 2000);
}

#[test]
fn what_was_read_of_a_grant_is_read_anew_for_others_and_for_other_rules() {
    let memo = Memo::default();
    let claims = |team: &str| RawJson::of(&serde_json::json!({ "team": team }));
    let of = |policy: &Policy, principal: &str, claims: &RawJson| {
        let subject = Subject {
            principal,
            claims: Some(claims),
            read: Some(&memo),
            ..Subject::default()
        };
        policy.subject(&subject).number()
    };
    let rules =
        || policy("[[rules]]\nname = 'r'\neffect = 'allow'\nwhen = 'claims.team == \"a\"'\n");
    let (first, other) = (rules(), rules());
    let known = of(&first, "alice", &claims("a"));
    assert_eq!(of(&first, "alice", &claims("a")), known);
    assert_ne!(of(&first, "bob", &claims("a")), known);
    assert_ne!(of(&other, "alice", &claims("a")), known);
    assert_eq!(
        of(&first, "alice", &claims("a")),
        known,
        "found by what it is"
    );
}

#[test]
fn only_a_rule_that_names_methods_allows_one_and_any_rule_denies_it() {
    let method = |pool| Target {
        pool,
        ..target(TargetKind::Method, "skills/list")
    };
    let all = "[[rules]]\nname = 'all'\neffect = 'allow'\n";
    let skills =
        "[[rules]]\nname = 'skills'\neffect = 'allow'\nmethods = ['skills/*']\npools = ['p']\n";
    let guests = "[[rules]]\nname = 'guests'\neffect = 'deny'\nprincipals = ['guest']\n";
    assert!(decided(&policy(""), &by("ann"), &method("p")).0);
    assert_eq!(
        decided(&policy(all), &by("ann"), &method("p")),
        (false, None)
    );
    let rules = policy(&[all, skills, guests].concat());
    assert_eq!(
        decided(&rules, &by("ann"), &method("p")),
        (true, Some("skills".into()))
    );
    assert_eq!(decided(&rules, &by("ann"), &method("q")), (false, None));
    assert_eq!(
        decided(&rules, &by("guest"), &method("p")),
        (false, Some("guests".into()))
    );
    assert!(decided(&rules, &by("ann"), &tool("t")).0);
}
