use std::time::Duration;

use shoal_worker::Isolation;

use super::super::{Backend, Environment, Period, Role};
use super::operator;
use crate::cli::{Pools, Serve};

#[test]
fn what_a_program_sets_lies_below_all_that_is_said_of_it() {
    let program = || {
        operator()
            .program("pools.weather.backend", "handler")
            .program("pools.weather.concurrency", "8")
            .program("pools.weather.queue", "9")
            .program("shutdown.calls", "1m")
    };
    let settings = program()
        .file("[pools.weather]\nconcurrency = 16\n[pools.other]\nbackend = 'demo'")
        .variable("SHOAL_SHUTDOWN__CALLS", "2m")
        .settings();
    let pool = &settings.pools["weather"];
    assert!(matches!(pool.backend, Backend::Handler));
    assert_eq!((pool.limits.concurrency, pool.limits.queue), (16, 9));
    assert_eq!(settings.shutdown.calls.get(), Duration::from_secs(120));
    assert_eq!(settings.pools.len(), 2);
    let refusal = program().program("pools.weather.queue", "many").refusal();
    assert!(
        refusal.starts_with("the program: pools.weather.queue: "),
        "{refusal}"
    );
}

#[test]
fn nothing_is_needed() {
    let loaded = operator().load().unwrap();
    assert_eq!(loaded.settings.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(loaded.settings.node.roles, Role::ALL);
    assert!(loaded.settings.pools.is_empty() && loaded.sources.is_empty() && !loaded.from_file);
}

#[test]
fn later_sources_win_setting_by_setting() {
    let file = "[server]\nlisten = '127.0.0.1:1'\nadmin = '127.0.0.1:2'\npath = '/file'\n";
    let serve = Serve {
        listen: Some("127.0.0.1:3".parse().unwrap()),
        ..Serve::default()
    };
    let operator = operator()
        .file(file)
        .variable("SHOAL_SERVER__LISTEN", "127.0.0.1:4")
        .variable("SHOAL_SERVER__ADMIN", "127.0.0.1:5")
        .flags(serve.flags());
    let settings = operator.settings();
    assert_eq!(settings.server.listen.port(), 3, "flag");
    assert_eq!(settings.server.admin.port(), 5, "variable");
    assert_eq!(settings.server.endpoint.path, "/file", "file");
    assert_eq!(
        settings.server.header_timeout,
        Period::seconds(75),
        "default"
    );
    assert!(operator.load().unwrap().from_file);
}

#[test]
fn the_environment_may_name_the_file() {
    let with_file = operator().file("[session]\nidle = '1h'\n");
    let path = with_file.file.clone().unwrap();
    let settings = operator()
        .variable("SHOAL_CONFIG", path.to_str().unwrap())
        .settings();
    assert_eq!(settings.session.idle, Period::seconds(3600));
}

#[test]
fn variables_are_toml_or_text() {
    let settings = operator()
        .variable("SHOAL_LIMITS__NESTING", "7")
        .variable("SHOAL_SERVER__HTTP_SSE", "false")
        .variable("SHOAL_SERVER__ALLOWED_HOSTS", "['a', 'b']")
        .variable("SHOAL_SERVER__LISTEN", "8123")
        .variable("SHOAL_CALLS__TIMEOUT", "1h 30m")
        .variable("SHOAL_POOLS__FILES__BACKEND", "demo")
        .variable("SHOAL_POOLS__FILES__PREFIX", "2026-07-28")
        .settings();
    assert_eq!(settings.limits.nesting, 7);
    assert!(!settings.server.endpoint.http_sse);
    assert_eq!(settings.server.endpoint.allowed_hosts, ["a", "b"]);
    assert_eq!(settings.server.listen.to_string(), "127.0.0.1:8123");
    assert_eq!(settings.calls.timeout, Period::seconds(5400));
    assert_eq!(settings.pools["files"].offer.prefix, "2026-07-28");
}

#[test]
fn a_pool_can_be_made_of_variables_alone() {
    let settings = operator()
        .variable("SHOAL_POOLS__MY_FILES__BACKEND__STDIO__COMMAND", "npx")
        .variable("SHOAL_POOLS__MY_FILES__BACKEND__STDIO__ARGS", "['-y']")
        .variable("SHOAL_POOLS__MY_FILES__BACKEND__STDIO__ENV__API_Key", "k")
        .variable(
            "SHOAL_POOLS__MY_FILES__BACKEND__STDIO__ISOLATION",
            "session",
        )
        .variable("SHOAL_POOLS__MY_FILES__BACKEND__STDIO__MAY_ASK", "false")
        .settings();
    let Backend::Stdio(stdio) = &settings.pools["my_files"].backend else {
        panic!("{settings:?}");
    };
    assert_eq!(stdio.args, ["-y"]);
    assert_eq!(stdio.isolation, Isolation::Session);
    assert!(!stdio.may_ask);
    assert_eq!(stdio.env["API_Key"].expose(), "k");
}

#[test]
fn quotas_belong_to_no_table_and_can_be_a_variable() {
    let settings = operator()
        .variable(
            "SHOAL_QUOTAS",
            "[{ name = 'calls', per = 'principal', rate = '5/s' }]",
        )
        .settings();
    assert_eq!(settings.quotas[0].name, "calls");
}

#[test]
fn what_kubernetes_makes_for_a_service_called_shoal_is_left_alone() {
    let environment = Environment::of([
        ("SHOAL_PORT".to_owned(), "tcp://10.0.0.1:80".to_owned()),
        ("SHOAL_SERVICE_HOST".to_owned(), "10.0.0.1".to_owned()),
        (
            "SHOAL_PORT_80_TCP".to_owned(),
            "tcp://10.0.0.1:80".to_owned(),
        ),
    ]);
    assert_eq!(environment.variables, []);
    assert_eq!(environment.without_effect(), []);
}

#[test]
fn a_backend_is_replaced_by_one_of_another_kind() {
    let file = "[pools.a]\nbackend = { stdio = { command = 'x' } }\nconcurrency = 3\n";
    let settings = operator()
        .file(file)
        .variable("SHOAL_POOLS__A__BACKEND", "conformance")
        .settings();
    assert!(matches!(settings.pools["a"].backend, Backend::Conformance));
    assert_eq!(settings.pools["a"].limits.concurrency, 3);
}

#[test]
fn flags_add_pools_to_the_configured_ones() {
    let pools = Pools {
        demo: true,
        conformance: false,
        inherit: false,
        env: Vec::new(),
        urls: vec!["http://a/mcp".to_owned(), "http://b/mcp".to_owned()],
        openapi: Some("pets.yaml".to_owned()),
        allow: vec!["get*".to_owned()],
        tag: vec!["pets".to_owned()],
        path: vec!["/pets*".to_owned()],
        base_url: vec!["http://a/v1".to_owned()],
        server: ["uvx", "tool", "--fast"].map(str::to_owned).to_vec(),
    };
    let settings = operator()
        .file("[pools.mine]\nbackend = 'conformance'\n")
        .flags(pools.flags())
        .settings();
    let names: Vec<&str> = settings.pools.keys().map(String::as_str).collect();
    assert_eq!(names, ["demo", "http", "mine", "openapi", "stdio"]);
    let Backend::Http(http) = &settings.pools["http"].backend else {
        panic!("{settings:?}");
    };
    assert_eq!(http.endpoints().unwrap(), ["http://a/mcp", "http://b/mcp"]);
    let Backend::OpenApi(openapi) = &settings.pools["openapi"].backend else {
        panic!("{settings:?}");
    };
    assert_eq!(openapi.document, "pets.yaml");
    assert_eq!(
        (&openapi.tags, &openapi.paths),
        (&vec!["pets".to_owned()], &vec!["/pets*".to_owned()])
    );
    assert_eq!(settings.pools["openapi"].offer.tools.allow, ["get*"]);
    assert_eq!(openapi.bases().unwrap(), [Some("http://a/v1")]);
    let Backend::Stdio(stdio) = &settings.pools["stdio"].backend else {
        panic!("{settings:?}");
    };
    assert_eq!((stdio.command.as_str(), stdio.args.len()), ("uvx", 2));
}
