use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kube::core::DynamicObject;
use serde_json::{Value, json};
use shoal_outbound::OutboundConfig;
use shoal_ports::Secret;
use shoal_ports::kubernetes::{KubernetesSettings, ServerKind};
use shoal_telemetry::metrics::DiscoveryRefusal as Reason;

use super::Plan;
use crate::object::{Object, What};
use crate::render::texts;
use crate::translate::{Pool, SecretKey};

fn object(kind: ServerKind, value: Value) -> Object {
    let object: DynamicObject = serde_json::from_value(value).unwrap();
    Object::of(kind, "v1", &object).unwrap()
}

fn service(name: &str, age: u32, annotations: Value) -> Object {
    service_with(
        name,
        age,
        annotations,
        json!({ "selector": { "app": name }, "ports": [{ "port": 8080 }] }),
    )
}

fn service_with(name: &str, age: u32, annotations: Value, spec: Value) -> Object {
    let value = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": name, "namespace": "team-a", "uid": name,
            "creationTimestamp": format!("2026-01-01T00:00:{age:02}Z"),
            "labels": { "shoal.dev/server": "true" }, "annotations": annotations,
        },
        "spec": spec,
    });
    object(ServerKind::Service, value)
}

fn plain(name: &str, spec: Value) -> Object {
    let mut service = service_with(name, 0, json!({}), spec);
    service.server = None;
    service
}

fn published(kind: ServerKind, name: &str, url: &str) -> Object {
    let status = match kind {
        ServerKind::Toolhive => json!({ "url": url }),
        _ => json!({ "address": { "url": url } }),
    };
    let value = json!({
        "apiVersion": "mcp.x-k8s.io/v1beta1", "kind": "MCPServer",
        "metadata": { "name": name, "namespace": "team-a", "creationTimestamp": "2026-01-01T00:00:30Z" },
        "status": status,
    });
    object(kind, value)
}

fn config() -> KubernetesSettings {
    KubernetesSettings {
        tokens: true,
        ..KubernetesSettings::default()
    }
}

fn plan<'a>(objects: &'a [Object], config: &KubernetesSettings, taken: &[&str]) -> Plan<'a> {
    let outbound = OutboundConfig {
        allow: vec!["10.9.0.0/16".to_owned()],
        ..OutboundConfig::default()
    };
    let taken: BTreeSet<String> = taken.iter().map(|name| (*name).to_owned()).collect();
    Plan::of(objects, config, &outbound, &taken, &|_: &Pool| Ok(()))
}

fn one(object: Object) -> Result<Pool, (Reason, String)> {
    let objects = [object];
    let mut made = plan(&objects, &config(), &[]);
    match made.pools.pop() {
        Some(planned) => Ok(planned.pool),
        None => {
            let refused = made.refused.pop().expect("a pool, or a reason");
            Err((refused.refusal.reason, refused.refusal.message))
        }
    }
}

#[test]
fn a_service_becomes_a_pool() {
    let pool = one(service("weather-eu", 0, json!({}))).unwrap();
    assert_eq!(pool.name, "team-a_weather-eu");
    assert_eq!(pool.url.as_str(), "http://weather-eu.team-a.svc:8080/mcp");
    assert_eq!(pool.prefix, "weather_eu_");
    assert_eq!(pool.token, None);
    let said = json!({
        "shoal.dev/path": "/v1/events", "shoal.dev/transport": "sse", "shoal.dev/prefix": "",
        "shoal.dev/token-secret": "weather/token", "other.dev/path": "/no",
    });
    let pool = one(service("weather", 0, said)).unwrap();
    assert_eq!(
        pool.url.as_str(),
        "http://weather.team-a.svc:8080/v1/events"
    );
    assert_eq!(pool.prefix, "");
    assert_eq!(pool.token.unwrap().secret, "weather");
}

#[test]
fn the_port_that_is_meant_is_found() {
    let ports = json!({ "selector": { "app": "x" }, "ports": [
        { "name": "dns", "port": 53, "protocol": "UDP" }, { "name": "http", "port": 80 },
        { "name": "mcp", "port": 81 }, { "name": "https", "port": 443 },
    ] });
    let url = |said: Value| {
        one(service_with("x", 0, said, ports.clone())).map(|pool| pool.url.to_string())
    };
    assert_eq!(url(json!({})).unwrap(), "http://x.team-a.svc:81/mcp");
    assert_eq!(
        url(json!({ "shoal.dev/port": "https" })).unwrap(),
        "https://x.team-a.svc/mcp"
    );
    assert_eq!(
        url(json!({ "shoal.dev/port": "80" })).unwrap(),
        "http://x.team-a.svc/mcp"
    );
    assert_eq!(
        url(json!({ "shoal.dev/port": "dns" })).unwrap_err().0,
        Reason::InvalidAnnotation
    );
}

#[test]
fn what_is_wrong_is_told() {
    for (said, name) in [
        (json!({ "shoal.dev/path": "no slash" }), "path"),
        (json!({ "shoal.dev/path": "/x?user=1" }), "path"),
        (json!({ "shoal.dev/transport": "stdio" }), "transport"),
        (
            json!({ "shoal.dev/prefix": "spaces are not names" }),
            "prefix",
        ),
        (
            json!({ "shoal.dev/token-secret": "no-key" }),
            "token-secret",
        ),
        (
            json!({ "shoal.dev/token-secret": "../other/key" }),
            "token-secret",
        ),
        (
            json!({ "shoal.dev/token-secret": "../key" }),
            "token-secret",
        ),
        (
            json!({ "shoal.dev/token-secret": "A_b/key" }),
            "token-secret",
        ),
        (json!({ "shoal.dev/port": "9" }), "port"),
    ] {
        let (reason, message) = one(service("x", 0, said)).unwrap_err();
        assert_eq!(reason, Reason::InvalidAnnotation, "{message}");
        assert!(
            message.starts_with(&format!("shoal.dev/{name}: ")),
            "{message}"
        );
    }
}

#[test]
fn a_service_that_could_lead_anywhere_is_refused() {
    let external = json!({ "type": "ExternalName", "externalName": "metadata.internal", "ports": [{ "port": 80 }] });
    let by_hand = json!({ "ports": [{ "port": 80 }] });
    for spec in [external, by_hand] {
        let (reason, _) = one(service_with("x", 0, json!({}), spec)).unwrap_err();
        assert_eq!(reason, Reason::TargetNotAllowed);
    }
}

#[test]
fn a_refused_url_is_told_with_what_to_write() {
    let long = format!("weather:8080/{}", "x".repeat(1500));
    for (url, what) in [
        (
            "not a URL",
            "the URL \"not a URL\" cannot be parsed (relative URL without a base)",
        ),
        (
            "weather:8080/mcp",
            "does not begin with http:// or https://",
        ),
        (&long, "does not begin with http:// or https://"),
    ] {
        let objects = [published(ServerKind::Toolhive, "x", url)];
        let plan = plan(&objects, &config(), &[]);
        let told = &plan.refused[0].refusal.message;
        assert!(told.contains(what), "{told}");
        assert!(
            told.contains(": write it as http://NAME.team-a.svc:PORT/PATH"),
            "{told}"
        );
    }
}

#[test]
fn a_published_url_stays_within_its_namespace() {
    let selects = json!({ "selector": { "app": "x" }, "ports": [{ "port": 80 }] });
    let external = json!({ "type": "ExternalName", "externalName": "elsewhere" });
    let allowed = [
        (
            "http://mcp-x.team-a.svc.cluster.local:8080/sse#x",
            "http://mcp-x.team-a.svc.cluster.local:8080/sse",
        ),
        (
            "https://mcp-x.team-a.svc/mcp",
            "https://mcp-x.team-a.svc/mcp",
        ),
        ("http://10.9.1.1:8080/mcp", "http://10.9.1.1:8080/mcp"),
    ];
    let refused = [
        "http://mcp-x.team-b.svc.cluster.local/mcp",
        "http://mcp-y.team-b.svc.cluster.local/mcp",
        "http://mcp-y.team-b.svc/mcp",
        "http://gone.team-a.svc/mcp",
        "http://external.team-a.svc/mcp",
        "http://mcp-x.team-a.svc.evil.example/mcp",
        "http://mcp-x.team-a/mcp",
        "http://kubernetes.default.svc/",
        "https://example.com/mcp",
        "http://169.254.169.254/latest",
        "http://10.8.1.1/mcp",
        "http://[::ffff:10.8.1.1]/mcp",
        "http://user:pass@mcp-x.team-a.svc/mcp",
        "file:///etc/passwd",
        "not a URL",
    ];
    for kind in [ServerKind::McpLifecycleOperator, ServerKind::Toolhive] {
        let with = |url: &str| {
            let mut other = plain("mcp-y", selects.clone());
            other.namespace = "team-b".to_owned();
            [
                other,
                plain("mcp-x", selects.clone()),
                plain("external", external.clone()),
                published(kind, "x", url),
            ]
        };
        for (url, taken) in allowed {
            let objects = with(url);
            let plan = plan(&objects, &config(), &[]);
            assert_eq!(plan.pools.len(), 1, "{url}: {:?}", plan.refused);
            assert_eq!(plan.pools[0].pool.url.as_str(), taken);
        }
        for url in refused {
            let objects = with(url);
            let plan = plan(&objects, &config(), &[]);
            assert!(plan.pools.is_empty(), "{url}");
            assert_eq!(
                plan.refused[0].refusal.reason,
                Reason::TargetNotAllowed,
                "{url}"
            );
        }
    }
}

#[test]
fn one_that_has_no_url_yet_or_is_going_is_nothing() {
    let mut going = service("x", 0, json!({}));
    going.leaving = true;
    let excluded = |url: &str| {
        let mut object = published(ServerKind::Toolhive, "y", url);
        object.server = Some("false".to_owned());
        object
    };
    let mut going_without_url = published(ServerKind::Toolhive, "w", "");
    going_without_url.leaving = true;
    let objects = [
        going,
        excluded("http://nowhere/"),
        excluded(""),
        going_without_url,
        published(ServerKind::Toolhive, "z", ""),
    ];
    let plan = plan(&objects, &config(), &[]);
    assert!(plan.pools.is_empty() && plan.refused.is_empty());
    assert_eq!(plan.waiting, 1);
}

#[test]
fn names_and_places_are_those_of_the_oldest() {
    let limited = KubernetesSettings {
        pools: 2,
        ..config()
    };
    let selects = json!({ "selector": { "app": "b" } });
    let objects = [
        service("c", 9, json!({})),
        service("b", 2, json!({})),
        published(
            ServerKind::McpLifecycleOperator,
            "b",
            "http://b.team-a.svc/mcp",
        ),
        service("a", 5, json!({})),
        plain("other", selects),
        service("mine", 1, json!({})),
    ];
    let plan = plan(&objects, &limited, &["team-a_mine"]);
    let names: Vec<&str> = plan.pools.iter().map(|it| it.pool.name.as_str()).collect();
    assert_eq!(names, ["team-a_b", "team-a_a"]);
    let refused: Vec<_> = (plan.refused.iter())
        .map(|it| (it.object.path(), it.refusal.reason))
        .collect();
    assert_eq!(
        refused,
        [
            ("service/team-a/mine".to_owned(), Reason::NameTaken),
            ("service/team-a/c".to_owned(), Reason::LimitReached),
            (
                "mcp-lifecycle-operator/team-a/b".to_owned(),
                Reason::NameTaken
            ),
        ]
    );
}

#[test]
fn an_object_of_a_kind_that_is_left_out_is_no_server() {
    let limited = KubernetesSettings {
        kinds: vec![ServerKind::Toolhive],
        ..config()
    };
    let objects = [
        service("b", 0, json!({})),
        service("bad", 1, json!({ "shoal.dev/port": "nowhere" })),
        published(ServerKind::Toolhive, "x", "http://b.team-a.svc/mcp"),
    ];
    let plan = plan(&objects, &limited, &[]);
    let names: Vec<&str> = plan.pools.iter().map(|it| it.pool.name.as_str()).collect();
    assert_eq!(names, ["team-a_x"]);
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
}

#[test]
fn a_namespace_takes_the_places_of_no_other() {
    let limited = KubernetesSettings {
        pools_per_namespace: 2,
        ..config()
    };
    let mut of_another = service("d", 9, json!({}));
    of_another.namespace = "team-b".to_owned();
    let objects = [
        service("a", 1, json!({})),
        service("b", 2, json!({})),
        service("c", 3, json!({})),
        of_another,
    ];
    let plan = plan(&objects, &limited, &[]);
    let names: Vec<&str> = plan.pools.iter().map(|it| it.pool.name.as_str()).collect();
    assert_eq!(names, ["team-a_a", "team-a_b", "team-b_d"]);
    let refusal = &plan.refused[0].refusal;
    assert_eq!(refusal.reason, Reason::LimitReached);
    assert!(
        refusal.message.contains("pools_per_namespace"),
        "{refusal:?}"
    );
}

#[test]
fn an_object_takes_no_more_memory_than_it_needs() {
    let long = "\u{e4}".repeat(100_000);
    let said = json!({ "shoal.dev/path": format!("/{long}"), "shoal.dev/note": long, "shoal.dev/transport": long });
    let kept = service("x", 0, said);
    let bytes: usize = kept.annotations.values().map(String::len).sum();
    assert!((1..10_000).contains(&bytes), "{bytes}");
    let (reason, message) = one(kept).unwrap_err();
    assert_eq!(reason, Reason::InvalidAnnotation);
    assert!(message.len() <= 1000, "{}", message.len());

    for more in ["", "x", "xx", "xxx"] {
        let url = format!("http://mcp-x.team-a.svc/{more}{long}");
        let published = published(ServerKind::Toolhive, "x", &url);
        let What::Published(Some(kept)) = &published.what else {
            panic!("{published:?}");
        };
        assert!((2049..2100).contains(&kept.len()), "{}", kept.len());
        assert_eq!(one(published).unwrap_err().0, Reason::TargetNotAllowed);
    }
}

#[test]
fn tokens_reach_workers_alone() {
    let objects = [
        service("a", 0, json!({ "shoal.dev/token-secret": "a/token" })),
        service("b", 1, json!({})),
        service("c", 2, json!({ "shoal.dev/token-secret": "c/token" })),
    ];
    let mut plan = plan(&objects, &config(), &[]);
    let keys: Vec<SecretKey> = plan.tokens().into_iter().collect();
    assert_eq!(keys.len(), 2);
    plan.without(&BTreeMap::from([(
        keys[1].clone(),
        "it is gone".to_owned(),
    )]));
    let tokens = BTreeMap::from([(keys[0].clone(), Secret::new("s3cret"))]);
    let texts = texts(&mut plan, &tokens, Path::new("/run/found"));
    let nodes = &texts.config_map["pools.toml"];
    assert!(
        !nodes.contains("s3cret") && !nodes.contains("headers_file"),
        "{nodes}"
    );
    let workers = texts.secret["pools.toml"].expose();
    assert!(
        workers.contains("headers_file = \"/run/found/team-a_a.headers\""),
        "{workers}"
    );
    assert_eq!(
        texts.secret["team-a_a.headers"].expose(),
        "Authorization: Bearer s3cret\n"
    );
    assert_eq!(texts.secret.len(), 2);
    assert!(
        workers.contains("[pools.team-a_b") && !workers.contains("[pools.team-a_c"),
        "{workers}"
    );
    assert_eq!(plan.refused[0].refusal.reason, Reason::TokenUnavailable);
}

#[test]
fn a_plan_fits_into_a_config_map() {
    let path = format!("/{}", "x".repeat(1000));
    let said = json!({ "shoal.dev/path": path });
    let objects: Vec<Object> = (0..2000)
        .map(|at| service(&format!("s{at:04}"), 0, said.clone()))
        .collect();
    let many = KubernetesSettings {
        pools: 10_000,
        pools_per_namespace: 10_000,
        ..config()
    };
    let mut plan = plan(&objects, &many, &[]);
    let texts = texts(&mut plan, &BTreeMap::new(), Path::new("/run/found"));
    let bytes = texts.secret["pools.toml"].expose().len();
    assert!((800_000..1_000_000).contains(&bytes), "{bytes}");
    assert_eq!(plan.pools.len() + plan.refused.len(), 2000);
    assert!(
        plan.refused
            .iter()
            .all(|it| it.refusal.reason == Reason::LimitReached)
    );
    assert!(plan.pools.len() > 700, "{}", plan.pools.len());
}

#[test]
fn an_object_that_the_rest_of_shoal_refuses_concerns_no_other() {
    let objects = [service("a", 0, json!({})), service("b", 1, json!({}))];
    let outbound = OutboundConfig::default();
    let accepts = |pool: &Pool| match pool.name.as_str() {
        "team-a_a" => Err("no".to_owned()),
        _ => Ok(()),
    };
    let plan = Plan::of(&objects, &config(), &outbound, &BTreeSet::new(), &accepts);
    assert_eq!(plan.pools.len(), 1);
    assert_eq!(plan.refused[0].refusal.reason, Reason::PoolInvalid);
}
