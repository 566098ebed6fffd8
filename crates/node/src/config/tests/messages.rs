use super::operator;
use crate::cli::Serve;

#[track_caller]
fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

#[test]
fn a_setting_that_does_not_exist() {
    let message = operator()
        .variable("SHOAL_SERVER__LISEN", "127.0.0.1:1")
        .refusal();
    says(
        &message,
        &[
            "server.lisen",
            "variable SHOAL_SERVER__LISEN",
            "SHOAL_SERVER__LISTEN",
        ],
    );
    let message = operator().file("[sever]\n").refusal();
    says(&message, &["sever", "shoal.toml", "did you mean server?"]);
}

#[test]
fn a_value_that_a_setting_cannot_have() {
    for (name, value, parts) in [
        (
            "SHOAL_SERVER__LISTEN",
            "localhost",
            ["server.listen", "0.0.0.0:8080", "127.0.0.1:8080"],
        ),
        (
            "SHOAL_LOGGING__FORMAT",
            "yaml",
            ["logging.format", "\"pretty\", \"json\"", "Format of lines"],
        ),
        (
            "SHOAL_STREAMS__RETRY",
            "5",
            ["streams.retry", "5 has no unit", "\"5s\""],
        ),
        (
            "SHOAL_CALLS__TIMEOUT",
            "soon",
            ["calls.timeout", "\"soon\"", "\"5m\""],
        ),
        (
            "SHOAL_LIMITS__NESTING",
            "-1",
            ["limits.nesting", "-1 is less than 0", "Maximum nesting"],
        ),
        (
            "SHOAL_NODE__ROLES",
            "['edgy']",
            ["node.roles[0]", "\"edgy\"", "\"edge\""],
        ),
        ("SHOAL_SERVER", "1", ["", "", ""]),
    ] {
        if name == "SHOAL_SERVER" {
            // See `what_kubernetes_makes_for_a_service_called_shoal_is_left_alone`.
            assert!(operator().variable(name, value).load().is_ok());
            continue;
        }
        let message = operator().variable(name, value).refusal();
        says(&message, &parts);
        says(&message, &[name]);
    }
}

#[test]
fn a_file_is_named_with_the_line() {
    let message = operator().file("[server]\n\nlisten = \n").refusal();
    says(&message, &["shoal.toml:3:", "not TOML"]);
    let mut missing = operator();
    missing.file = Some("/does/not/exist.toml".into());
    says(
        &missing.refusal(),
        &["/does/not/exist.toml", "cannot be read"],
    );
}

#[test]
fn roles_that_lack_something_are_told_what() {
    let edge = crate::config::Role::Edge;
    let session = crate::config::Role::Session;
    let worker = crate::config::Role::Worker;
    let redis = || Some("redis://cache:6379".to_owned());
    let serve = |roles: Vec<crate::config::Role>, serve: Serve| {
        let serve = Serve {
            roles: Some(roles),
            ..serve
        };
        operator().flags(serve.flags()).refusal()
    };
    let alone = serve(vec![edge], Serve::default());
    says(&alone, &["--roles", "Redis", "--store redis://"]);
    let unreachable = serve(
        vec![session],
        Serve {
            store: redis(),
            ..Serve::default()
        },
    );
    says(&unreachable, &["--roles", "--cluster-listen"]);
    let unemployed = serve(vec![worker], Serve::default());
    says(&unemployed, &["--roles", "--join HOST:PORT"]);
    let toolless = serve(vec![edge, session], Serve::default());
    says(&toolless, &["--roles", "workers", "--cluster-listen"]);
}

#[test]
fn one_message_must_fit_into_the_room_for_all() {
    let small = operator().variable("SHOAL_LIMITS__BODIES_IN_FLIGHT_BYTES", "4194303");
    says(
        &small.refusal(),
        &[
            "SHOAL_LIMITS__BODIES_IN_FLIGHT_BYTES",
            "4194303",
            "limits.body_bytes = 4194304",
            "raise",
        ],
    );
    let fits = small.variable("SHOAL_LIMITS__BODY_BYTES", "4194303");
    assert!(fits.load().is_ok());
    let large = operator().variable("SHOAL_LIMITS__BODY_BYTES", "67108865");
    says(
        &large.refusal(),
        &["limits.bodies_in_flight_bytes", "67108864", "67108865"],
    );
}

#[test]
fn cluster_addresses_are_checked() {
    let serve = |serve: Serve| operator().flags(serve.flags()).refusal();
    let anywhere = serve(Serve {
        cluster_listen: Some("0.0.0.0:7000".parse().unwrap()),
        ..Serve::default()
    });
    says(&anywhere, &["cluster.advertise", "HOST:PORT"]);
    let join = serve(Serve {
        join: Some(vec!["http://node".into()]),
        ..Serve::default()
    });
    says(&join, &["--join", "\"http://node\"", "HOST:PORT"]);
    let version = operator()
        .variable("SHOAL_CLUSTER__PROTOCOL", "99")
        .refusal();
    says(&version, &["SHOAL_CLUSTER__PROTOCOL", "versions 1 to 6"]);
}

#[test]
fn certificates_are_checked_without_being_opened() {
    let with = |settings: &[(&str, &str)]| {
        let given = settings.iter().fold(operator(), |operator, (name, value)| {
            operator.variable(&format!("SHOAL_CLUSTER__TLS__{name}"), value)
        });
        given.load().map(drop).map_err(|error| error.to_string())
    };
    let certificate = ("CERTIFICATE", "/nowhere/tls.crt");
    let key = ("KEY", "/nowhere/tls.key");
    let authority = ("AUTHORITY", "/nowhere/ca.crt");
    assert_eq!(with(&[certificate, key, authority]), Ok(()));
    let keyless = with(&[certificate, authority]).unwrap_err();
    says(
        &keyless,
        &["cluster.tls.key", "certificate, key and authority"],
    );
    let mixed = with(&[("ALLOW_PLAINTEXT", "true")]).unwrap_err();
    says(
        &mixed,
        &["cluster.tls.allow_plaintext", "nothing but plaintext"],
    );
    let named = with(&[certificate, key, authority, ("NAME", "my cluster")]);
    says(&named.unwrap_err(), &["cluster.tls.name", "\"my cluster\""]);
    let often = with(&[certificate, key, authority, ("REREAD", "0s")]);
    says(
        &often.unwrap_err(),
        &["cluster.tls.reread", "longer than 0"],
    );
}

#[test]
fn stores_that_there_are_not_are_said_plainly_and_no_password_is() {
    let refusal = |store: &str| {
        let serve = Serve {
            store: Some(store.into()),
            ..Serve::default()
        };
        operator().flags(serve.flags()).refusal()
    };
    says(&refusal("disk"), &["--store", "redis://", "\"memory\""]);
    let message = refusal("postgres://shoal:hunter2@db");
    says(&message, &["--store", "redis://"]);
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn an_open_address_needs_authentication_or_consent() {
    let open = operator().variable("SHOAL_SERVER__LISTEN", "0.0.0.0:8080");
    says(
        &open.refusal(),
        &["server.listen", "auth.mode = \"tokens\"", "allow_anonymous"],
    );
    let accepted = open.variable("SHOAL_AUTH__ALLOW_ANONYMOUS", "true");
    assert!(accepted.load().is_ok());
    let loopback = operator().variable("SHOAL_SERVER__LISTEN", "[::1]:8080");
    assert!(loopback.load().is_ok());
}

#[test]
fn tokens_and_their_mode_go_together() {
    let hash = "a".repeat(64);
    let tokens = format!("[{{ name = 'alice', sha256 = '{hash}' }}]");
    says(
        &operator().variable("SHOAL_AUTH__MODE", "tokens").refusal(),
        &["auth.mode", "auth.tokens"],
    );
    says(
        &operator().variable("SHOAL_AUTH__TOKENS", &tokens).refusal(),
        &["auth.tokens", "auth.mode = \"tokens\""],
    );
    let both = operator().variable("SHOAL_AUTH__MODE", "tokens");
    assert!(both.variable("SHOAL_AUTH__TOKENS", &tokens).load().is_ok());
    let twice =
        format!("[{{ name = 'alice', sha256 = '{hash}' }}, {{ name = 'bob', sha256 = '{hash}' }}]");
    let both = operator().variable("SHOAL_AUTH__MODE", "tokens");
    says(
        &both.variable("SHOAL_AUTH__TOKENS", &twice).refusal(),
        &["\"alice\"", "\"bob\"", "same token"],
    );
    // The console's calls use `shoal-console`. `anonymous` stands for all callers together, whose share is the whole
    // node.
    for name in ["shoal-console", "anonymous"] {
        let taken = format!("[{{ name = '{name}', sha256 = '{hash}' }}]");
        let both = operator().variable("SHOAL_AUTH__MODE", "tokens");
        says(
            &both.variable("SHOAL_AUTH__TOKENS", &taken).refusal(),
            &["auth.tokens", name, "reserved"],
        );
    }
}

#[test]
fn pools_are_checked() {
    let long_prefix = format!("{{ backend = 'demo', prefix = '{}' }}", "x".repeat(65));
    let long_name = format!(
        "{{ backend = 'demo', prefix = 'p_', tools = {{ rename = {{ echo = '{}' }} }} }}",
        "x".repeat(127)
    );
    for (name, value, parts) in [
        (
            "SHOAL_POOLS__A__CONCURRENCY",
            "3",
            ["pools.a.backend", "is not set"],
        ),
        (
            "SHOAL_POOLS__A__BACKEND",
            "magic",
            ["pools.a.backend", "{ stdio = { … } }"],
        ),
        (
            "SHOAL_POOLS__A__BACKEND",
            "{ stdio = {} }",
            ["pools.a.backend.stdio.command", "is not set"],
        ),
        (
            "SHOAL_POOLS__A__BACKEND",
            "{ stdio = { command = '' } }",
            ["backend.stdio.command", "program"],
        ),
        (
            "SHOAL_POOLS__A",
            "{ backend = 'demo', concurrency = 0 }",
            ["pools.a.concurrency", "at least 1"],
        ),
        (
            "SHOAL_POOLS__A",
            "{ backend = 'demo', prefix = 'ä ' }",
            ["pools.a.prefix", "letters, digits"],
        ),
        (
            "SHOAL_POOLS__A",
            "{ backend = 'demo', tools = { rename = { echo = 'e cho' } } }",
            ["pools.a.tools.rename", "\"e cho\""],
        ),
        (
            "SHOAL_POOLS__A",
            "{ backend = 'demo', prompts = { rename = { greet = '' } } }",
            ["pools.a.prompts.rename", "letters, digits"],
        ),
        (
            "SHOAL_POOLS__A",
            "{ backend = 'demo', tools = { hints = { 't*' = { read_only = true } } } }",
            ["pools.a.tools.hints", "\"t*\" is no name"],
        ),
        (
            "SHOAL_POOLS__A",
            "{ backend = 'demo', tools = { describe = { '*' = 'D' } } }",
            ["pools.a.tools.describe", "by itself"],
        ),
        (
            "SHOAL_POOLS__A",
            "{ backend = 'demo', prompts = { rename = { 'p*' = 'q' } } }",
            ["pools.a.prompts.rename", "by itself"],
        ),
        (
            "SHOAL_POOLS__A",
            "{ backend = { stdio = { command = 'a', processes = 0 } } }",
            ["pools.a.backend.stdio.processes", "at least 1"],
        ),
        (
            "SHOAL_POOLS__A",
            &long_prefix,
            ["pools.a.prefix", "64 characters"],
        ),
        (
            "SHOAL_POOLS__A",
            &long_name,
            ["pools.a.tools.rename", "128 characters"],
        ),
        ("SHOAL_POOLS", "", ["pools.\"A b\"", "a-z"]),
    ] {
        let operator = match value {
            "" => operator().file("[pools.'A b']\nbackend = 'demo'\n"),
            value => operator().variable(name, value),
        };
        says(&operator.refusal(), &parts);
    }
}

#[test]
fn rules_name_their_setting() {
    for (name, value, parts) in [
        ("SHOAL_SERVER__PATH", "mcp", ["server.path", "/mcp"]),
        ("SHOAL_SERVER__PATH", "/m c", ["server.path", "letters"]),
        (
            "SHOAL_SERVER__PATH",
            "/sse",
            ["server.path", "server.http_sse"],
        ),
        (
            "SHOAL_SERVER__PATH",
            "/messages",
            ["server.path", "server.http_sse"],
        ),
        (
            "SHOAL_SERVER__ADMIN",
            "127.0.0.1:8080",
            ["server.admin", "server.listen"],
        ),
        (
            "SHOAL_SERVER__ALLOWED_ORIGINS",
            "['example.com']",
            ["server.allowed_origins", "https://"],
        ),
        (
            "SHOAL_SERVER__ALLOWED_ORIGINS",
            "['https://a.com/']",
            ["server.allowed_origins", "nothing"],
        ),
        (
            "SHOAL_SERVER__ALLOWED_HOSTS",
            "['http://a.com']",
            ["server.allowed_hosts", "scheme"],
        ),
        (
            "SHOAL_SERVER__ADMIN_HOSTS",
            "['a.com/x']",
            ["server.admin_hosts", "path"],
        ),
        (
            "SHOAL_LIMITS__CONNECTIONS",
            "0",
            ["limits.connections", "at least 1"],
        ),
        (
            "SHOAL_SESSION__IDLE",
            "0s",
            ["session.idle", "longer than 0"],
        ),
        (
            "SHOAL_LOGGING__LEVEL",
            "loud",
            ["logging.level", "shoal_edge=debug"],
        ),
    ] {
        let message = operator().variable(name, value).refusal();
        says(&message, &parts);
        says(&message, &[name]);
    }
}

#[test]
fn names_that_a_header_can_have_are_taken() {
    for (name, value) in [
        (
            "SHOAL_SERVER__ALLOWED_ORIGINS",
            "['*', 'null', 'https://a.com:1', 'chrome-extension://abc', 'http://[::1]:3']",
        ),
        (
            "SHOAL_SERVER__ALLOWED_HOSTS",
            "['*', 'a.com', 'a.com:1', '[::1]:80', '10.0.0.1']",
        ),
        ("SHOAL_SERVER__ADMIN", "127.0.0.1:0"),
    ] {
        assert!(operator().variable(name, value).load().is_ok(), "{value}");
    }
    let apart = operator()
        .variable("SHOAL_SERVER__PATH", "/sse")
        .variable("SHOAL_SERVER__HTTP_SSE", "false");
    assert!(apart.load().is_ok());
}
