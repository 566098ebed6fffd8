//! Measures a cached decision and a new one.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use shoal_policy::{Policy, RulesFile, Subject, Target, TargetKind};
use shoal_protocol::RawJson;

fn rules() -> Policy {
    let mut text = String::new();
    for at in 0..20 {
        text.push_str(&format!(
            "[[rules]]\nname = \"r{at}\"\neffect = \"allow\"\ntools = [\"team{at}_*\"]\n\
             when = '''claims.department == \"d{at}\" && !target.destructive'''\n"
        ));
    }
    let file: RulesFile = toml::from_str(&text).expect("rules");
    Policy::compile(&file.rules.unwrap_or_default()).expect("they can be used")
}

fn decide(c: &mut Criterion) {
    let policy = rules();
    let claims = RawJson::of(&serde_json::json!({
        "sub": "u-1", "iss": "https://id.example.com", "department": "d19", "groups": ["a", "b", "c"],
    }));
    let scopes: [Arc<str>; 2] = ["tools".into(), "prompts".into()];
    let subject = Subject {
        principal: "https://id.example.com u-1",
        scopes: &scopes,
        claims: Some(&claims),
        client: None,
        read: None,
    };
    let item = RawJson::from_static(r#"{"annotations":{"destructiveHint":false}}"#);
    let target = |catalog| Target {
        kind: TargetKind::Tool,
        name: "team19_search",
        pool: "search",
        item: Some(&item),
        catalog,
    };
    c.bench_function("decide/known", |b| {
        b.iter(|| policy.decide(&policy.subject(black_box(&subject)), &target(0)));
    });
    let mut catalog = 0;
    c.bench_function("decide/evaluated", |b| {
        b.iter(|| {
            catalog += 1;
            policy.decide(&policy.subject(black_box(&subject)), &target(catalog))
        });
    });
}

criterion_group!(benches, decide);
criterion_main!(benches);
