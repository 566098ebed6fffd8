use clap::{CommandFactory as _, Parser as _};

use super::{Cli, Command, ConfigCommand};
use crate::config::Role;

fn parse(line: &str) -> Result<Option<Command>, String> {
    Cli::try_parse_from(line.split_whitespace())
        .map(|cli| cli.command)
        .map_err(|error| error.to_string())
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn a_bare_shoal_is_no_error() {
    assert!(parse("shoal").unwrap().is_none());
}

#[test]
fn serve_takes_addresses_roles_and_a_command() {
    let line = "shoal serve --listen [::1]:0 --admin 127.0.0.1:0 --roles edge,worker --store memory \
                --cluster-listen 127.0.0.1:0 --advertise me:7000 --join a:1,b:2 \
                --config a.toml --demo --env A=b=c --env D -- npx -y server --flag";
    let Some(Command::Serve(serve)) = parse(line).unwrap() else {
        panic!("not serve");
    };
    assert_eq!(
        serve.roles.as_deref(),
        Some(&[Role::Edge, Role::Worker][..])
    );
    assert_eq!(serve.pools.server, ["npx", "-y", "server", "--flag"]);
    assert!(serve.pools.demo && !serve.pools.conformance);
    let server = serve.flags()[1].value.clone();
    assert_eq!(server["stdio"]["env"]["A"].as_str(), Some("b=c"));
    assert_eq!(server["stdio"]["inherit"][0].as_str(), Some("D"));
    let paths: Vec<String> = serve
        .flags()
        .iter()
        .map(|flag| flag.path.join("."))
        .collect();
    assert_eq!(
        paths,
        [
            "pools.demo.backend",
            "pools.stdio.backend",
            "server.listen",
            "server.admin",
            "node.roles",
            "node.store",
            "cluster.listen",
            "cluster.advertise",
            "cluster.join",
        ]
    );
}

#[test]
fn a_server_gets_all_of_the_environment_where_it_is_asked_for() {
    let inherited = |line: &str| {
        let flags = match parse(line).unwrap() {
            Some(Command::Serve(serve)) => serve.flags(),
            Some(Command::Stdio(stdio)) => stdio.flags(),
            other => panic!("{other:?}"),
        };
        flags[0].value["stdio"].get("inherit").cloned()
    };
    let all = |names: &[&str]| Some(names.to_vec().into());
    assert_eq!(inherited("shoal serve -- x"), None);
    assert_eq!(inherited("shoal serve --inherit -- x"), all(&["*"]));
    let both = "shoal serve --inherit --env A -- x";
    assert_eq!(inherited(both), all(&["A", "*"]));
    assert_eq!(inherited("shoal stdio -- x"), all(&["*"]));
}

#[test]
fn mistakes_are_explained() {
    for (line, part) in [
        (
            "shoal serve --roles edge,cache",
            "use edge, session or worker",
        ),
        ("shoal serve --listen example.com:80", "--listen"),
        ("shoal stdio --url http://a --demo", "cannot be used with"),
        ("shoal stdio --url http://a -- x", "cannot be used with"),
        ("shoal stdio --token t", "--url"),
        ("shoal config", "hash-token"),
        ("shoal sevre", "serve"),
        ("shoal install", "<PATH>"),
        ("shoal certificates", "<DIRECTORY>"),
        ("shoal certificates --secrets a b", "cannot be used with"),
        ("shoal tools --output yaml", "text, json"),
        ("shoal call --detach echo", "--task"),
        ("shoal tasks", "watch"),
        ("shoal tasks get", "<ID>"),
        ("shoal completions tcsh", "zsh"),
        ("shoal serve --inherit", "COMMAND"),
    ] {
        let message = parse(line).unwrap_err();
        assert!(message.contains(part), "{line}: {message}");
    }
}

#[test]
fn config_commands_take_the_file() {
    let Some(Command::Config(ConfigCommand::Check(file))) =
        parse("shoal config check --config x.toml").unwrap()
    else {
        panic!("not check");
    };
    assert_eq!(file.config.unwrap().to_str(), Some("x.toml"));
    for line in [
        "shoal config show",
        "shoal config doc",
        "shoal config schema",
    ] {
        assert!(parse(line).is_ok(), "{line}");
    }
}

#[test]
fn the_help_of_each_command_has_an_example_of_that_command() {
    fn check(command: &clap::Command, words: &str) {
        let mut inner = command.get_subcommands().peekable();
        if inner.peek().is_none() {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_else(|| panic!("{words} has no example"));
            assert!(help.starts_with("Example"), "{words}: {help}");
            for line in help.lines().skip(1) {
                assert!(line.trim().starts_with(words), "{words}: {line}");
            }
        }
        for inner in inner {
            check(inner, &format!("{words} {}", inner.get_name()));
        }
    }
    check(&Cli::with_examples("own"), "own");
    Cli::with_examples("own").debug_assert();
}

#[test]
fn addresses_may_be_ports_alone() {
    for listen in ["8080", ":8080", "localhost:8080", "127.0.0.1:8080"] {
        let line = format!("shoal serve --listen {listen} --admin 0 --cluster-listen :1");
        let Some(Command::Serve(serve)) = parse(&line).unwrap() else {
            panic!("not serve");
        };
        assert_eq!(serve.listen.unwrap().to_string(), "127.0.0.1:8080");
        assert_eq!(serve.cluster_listen.unwrap().to_string(), "127.0.0.1:1");
    }
    assert!(
        parse("shoal serve --listen example.com:80")
            .unwrap_err()
            .contains("IP:PORT")
    );
}

#[test]
fn a_server_is_missed_behind_a_double_dash() {
    let lacks = |line: &str| {
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        cli.lacks_server(line.split_whitespace().skip(1).map(Into::into))
    };
    for line in ["shoal serve --", "shoal serve --demo --", "shoal stdio --"] {
        assert!(lacks(line), "{line}");
    }
    for line in [
        "shoal serve",
        "shoal serve -- x",
        "shoal serve -- x --",
        "shoal tools --",
    ] {
        assert!(!lacks(line), "{line}");
    }
}

#[test]
fn a_nodes_admin_port_may_stand_alone() {
    for (typed, read) in [
        ("8081", "127.0.0.1:8081"),
        (":8081", "127.0.0.1:8081"),
        ("node-1:8081", "node-1:8081"),
        ("https://node-1:8081", "https://node-1:8081"),
    ] {
        let Some(Command::Status(status)) =
            parse(&format!("shoal status --admin {typed}")).unwrap()
        else {
            panic!("{typed}");
        };
        assert_eq!(status.admin, read);
    }
}
