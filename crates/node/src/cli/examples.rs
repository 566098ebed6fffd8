use clap::Command;

/// The words of each command with its examples: the line to type, then `#` and its effect.
const EXAMPLES: [(&str, &[&str]); 21] = [
    (
        "serve",
        &[
            "serve -- python3 server.py           # put a stdio server behind HTTP",
            "serve https://mcp.example.com/mcp    # or a server behind a URL",
            "serve --demo --listen 8080           # or the demo tools, at http://127.0.0.1:8080/mcp",
            "serve --config shoal.toml            # or the pools of a configuration",
        ],
    ),
    (
        "stdio",
        &[
            "stdio -- python3 server.py           # what a client starts in place of the server",
            "stdio --url http://127.0.0.1:8080/mcp",
        ],
    ),
    ("tools", &["tools --url http://127.0.0.1:8080/mcp"]),
    (
        "call",
        &[
            "call echo '{\"text\": \"hello\"}'",
            "call --answer guests=4 --answer date=2026-08-01 book_table '{\"restaurant\": \"Fuji\"}'",
            "call --task long_job '{\"steps\": 60}'",
        ],
    ),
    (
        "tasks get",
        &["tasks get 0197c6e2-…    # the id is the one that `call --task` printed"],
    ),
    ("tasks cancel", &["tasks cancel 0197c6e2-…"]),
    ("tasks watch", &["tasks watch 0197c6e2-…"]),
    (
        "status",
        &[
            "status --admin 127.0.0.1:8081",
            "status --ready && echo ready",
        ],
    ),
    ("worker-check", &["worker-check -- python3 worker.py"]),
    (
        "client-config",
        &[
            "client-config claude-code --url http://127.0.0.1:8080/mcp",
            "client-config claude-desktop -- python3 server.py",
        ],
    ),
    (
        "certificates",
        &[
            "certificates --pool search /etc/shoal/tls    # for nodes, and for the workers of one pool",
        ],
    ),
    (
        "controller",
        &[
            "controller --config shoal.toml    # with [discovery.kubernetes], in a pod or with KUBECONFIG",
        ],
    ),
    ("config check", &["config check --config shoal.toml"]),
    (
        "config show",
        &["config show --config shoal.toml --output json"],
    ),
    ("config doc", &["config doc > configuration.md"]),
    ("config schema", &["config schema > shoal.schema.json"]),
    (
        "config hash-token",
        &[
            "config hash-token                    # asks for a token, or makes one",
            "config hash-token < token.txt",
            "config hash-token < /dev/null        # makes one without asking",
        ],
    ),
    (
        "policy test",
        &["policy test cases.toml --config shoal.toml"],
    ),
    (
        "completions",
        &["completions bash > ~/.local/share/bash-completion/completions/shoal"],
    ),
    ("man", &["man /usr/local/share/man/man1"]),
    ("install", &["install /shared/shoal"]),
];

pub(super) fn added(mut command: Command, program: &str) -> Command {
    for (words, lines) in EXAMPLES {
        let words: Vec<&str> = words.split(' ').collect();
        command = below(command, &words, &help(program, lines));
    }
    command
}

fn below(command: Command, words: &[&str], help: &str) -> Command {
    match words {
        [] => command.after_help(help.to_owned()),
        [first, rest @ ..] => command.mut_subcommand(first, |inner| below(inner, rest, help)),
    }
}

fn help(program: &str, lines: &[&str]) -> String {
    let title = if lines.len() == 1 {
        "Example"
    } else {
        "Examples"
    };
    let lines = lines.iter().map(|line| format!("\n  {program} {line}"));
    format!("{title}:{}", lines.collect::<String>())
}
