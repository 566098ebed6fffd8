use super::super::changes::{PoolChange, at_next_start, changed_pools, pool_change};
use super::{Operator, operator};

const POOL: &str =
    "[pools.files]\nbackend = { stdio = { command = 'one', env = { KEY = 'secret' } } }\n";

fn file(text: &str) -> Operator {
    operator().file(text)
}

fn with(line: &str) -> String {
    format!("{POOL}{line}\n")
}

fn change(now: &str, next: &str) -> Option<PoolChange> {
    let [now, next] = [now, next].map(|text| file(text).settings());
    pool_change(&now.pools["files"], &next.pools["files"])
}

fn next_start(now: &str, next: &str) -> Vec<String> {
    let [now, next] = [now, next].map(|text| file(text).load().unwrap());
    at_next_start(&now, &next)
}

#[test]
fn a_pool_is_changed_no_more_than_it_has_to_be() {
    let nothing = PoolChange {
        offer: false,
        limits: false,
        backend: false,
    };
    let offer = PoolChange {
        offer: true,
        ..nothing
    };
    let limits = PoolChange {
        limits: true,
        ..nothing
    };
    let backend = PoolChange {
        backend: true,
        ..nothing
    };
    assert_eq!(change(POOL, POOL), None);
    // Another spelling of the default.
    assert_eq!(change(POOL, &with("queue_age = '5000ms'")), None);
    for line in [
        "prefix = 'x_'",
        "tools = { deny = ['rm'] }",
        "resources = { allow = ['file:///a'] }",
        "durability = 'always'",
        "hold = '1s'",
        "affinity = 'session'",
        "linger = '1s'",
    ] {
        assert_eq!(change(POOL, &with(line)), Some(offer), "{line}");
    }
    for line in [
        "concurrency = 3",
        "queue = 3",
        "cancel_grace = '1s'",
        "retained_results = 1",
    ] {
        assert_eq!(change(POOL, &with(line)), Some(limits), "{line}");
    }
    for (old, new) in [
        ("one", "two"),
        ("'secret'", "'other'"),
        ("env", "args = ['-v'], env"),
    ] {
        assert_eq!(
            change(POOL, &POOL.replace(old, new)),
            Some(backend),
            "{new}"
        );
    }
    let both = with("queue = 3").replace("one", "two");
    let expected = PoolChange {
        limits: true,
        ..backend
    };
    assert_eq!(change(POOL, &both), Some(expected));
}

#[test]
fn pools_that_are_as_before_are_not_among_the_changed() {
    let demo = |name: &str| format!("[pools.{name}]\nbackend = 'demo'\n");
    let now = file(&[demo("goes"), demo("same"), demo("other")].concat()).settings();
    let next = [
        demo("comes"),
        demo("same"),
        demo("other"),
        "queue = 1".to_owned(),
    ]
    .concat();
    let next = file(&next).settings();
    let changed = changed_pools(&now.pools, &next.pools);
    assert_eq!(
        changed.into_iter().collect::<Vec<_>>(),
        ["comes", "goes", "other"]
    );
}

#[test]
fn what_takes_another_start_is_named_and_secrets_are_not() {
    let token = |digit: &str| {
        let sha256 = digit.repeat(64);
        format!("[auth]\nmode = 'tokens'\ntokens = [{{ name = 'a', sha256 = '{sha256}' }}]\n")
    };
    assert!(next_start("", &with("")).is_empty());
    assert!(next_start("", "[calls]\ntimeout = '300000ms'\n").is_empty());
    let changed = next_start(
        &format!("{}[calls]\nretry_after = '1m'\n", token("0")),
        &format!(
            "{}[calls]\nretry_after = '2m'\n[server]\npath = '/x'\n",
            token("1")
        ),
    );
    assert_eq!(changed, ["auth.tokens", "calls.retry_after", "server.path"]);
    let store =
        |password: &str| format!("[node]\nstore = 'redis://shoal:{password}@localhost:6379'\n");
    assert_eq!(next_start(&store("a"), &store("b")), ["node.store"]);
    let keys = |key: &str| {
        format!(
            "[state_keys]\nkeys = [{{ value = '{}' }}]\n",
            key.repeat(32)
        )
    };
    assert_eq!(next_start(&keys("a"), &keys("b")), ["state_keys.keys"]);
}
