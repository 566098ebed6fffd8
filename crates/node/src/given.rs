//! Checks the stdio server after `--`, and warns about variables that servers do not get.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use shoal_ports::{Announcement, Worker as _};
use shoal_worker::{BackendState, Isolation, StdioConfig, WorkerRuntime};

use crate::cli::Pools;
use crate::config::{Backend, Settings};
use crate::exit::{Code, Failure};
use crate::print::plain;

const WANTED: [&str; 7] = [
    "_TOKEN",
    "_KEY",
    "_SECRET",
    "_PASSWORD",
    "_CREDENTIALS",
    "_DSN",
    "_URL",
];

const CONFIGURES_TOOLS: [&str; 13] = [
    "NPM_CONFIG_",
    "npm_config_",
    "UV_",
    "PIP_",
    "PIPX_",
    "PNPM_",
    "BUN_",
    "DENO_",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "JAVA_HOME",
    "KUBECONFIG",
    "DOCKER_",
];

/// The user can read the reason now, while a pool of the configuration would retry.
pub(crate) fn check(pools: &Pools, settings: &Settings) -> Result<(), Failure> {
    let pool = settings.pools.get(Pools::SERVER);
    let Some(config) = pool.and_then(|pool| server(&pool.backend)) else {
        return Ok(());
    };
    if pools.server.is_empty() {
        return Ok(());
    }
    let is_there = |name: &&String| name.contains(['=', '*']) || std::env::var_os(name).is_some();
    if let Some(name) = pools.env.iter().find(|name| !is_there(name)) {
        return Err(Failure::usage(format!(
            "--env {name}: there is no such variable in Shoal's own environment; export it, or give --env {name}=VALUE"
        )));
    }
    let path = config.env.get("PATH").map(|path| path.expose().into());
    let path = path
        .or_else(|| std::env::var_os("PATH"))
        .unwrap_or_default();
    let Err(reason) = find(&config.command, &path) else {
        return Ok(());
    };
    let command = &config.command;
    Err(Failure::usage(format!(
        "cannot start the server {command:?}: {reason}"
    )))
}

/// Returns the reason if a server that the user typed cannot be started. Waits forever if all start.
pub(crate) async fn cannot_start(pools: &Pools, workers: Vec<Arc<WorkerRuntime>>) -> Failure {
    let stdio = pools.command().map(|server| TypedEndpoint {
        pool: Pools::SERVER,
        server,
        code: Code::Failed,
    });
    let openapi = pools.openapi.clone().map(|document| TypedEndpoint {
        pool: Pools::OPENAPI,
        server: document,
        // The start of an OpenAPI server fails only because of its document.
        code: Code::Usage,
    });
    let typed = stdio.into_iter().chain(openapi);
    let failures = typed.map(|typed| Box::pin(fails(typed, &workers)));
    let failures: Vec<_> = failures.collect();
    match failures.is_empty() {
        true => std::future::pending().await,
        false => futures::future::select_all(failures).await.0,
    }
}

struct TypedEndpoint {
    pool: &'static str,
    server: String,
    code: Code,
}

async fn fails(typed: TypedEndpoint, workers: &[Arc<WorkerRuntime>]) -> Failure {
    let runs = |worker: &&Arc<WorkerRuntime>| *worker.announcement().borrow().pool == *typed.pool;
    let Some(worker) = workers.iter().find(runs) else {
        return std::future::pending().await;
    };
    let mut said = worker.announcement();
    let fails = |said: &Announcement| {
        let reason = said.detail.as_deref()?;
        reason
            .strip_prefix(BackendState::CANNOT_START)
            .map(str::to_owned)
    };
    let settled = said
        .wait_for(|said| said.catalog.is_some() || fails(said).is_some())
        .await;
    let reason = settled.ok().and_then(|said| fails(&said));
    let Some(reason) = reason else {
        return std::future::pending().await;
    };
    let reason = plain(&reason);
    let mut message = format!("cannot start the server `{}`: {reason}", typed.server);
    let last_words = worker.last_words();
    if !last_words.is_empty() {
        message.push_str("\nthe last that it wrote to standard error:");
    }
    for line in last_words {
        message.push_str("\n    ");
        message.push_str(&line);
    }
    Failure::new(typed.code, message)
}

pub(crate) fn tell_isolation(settings: &Settings) {
    for (pool, backend) in settings
        .pools
        .iter()
        .map(|(name, pool)| (name, &pool.backend))
    {
        match server(backend).map(|server| server.isolation) {
            Some(Isolation::Session) => tracing::info!(
                pool,
                "each session has a server process of its own; calls without a session share with those of their principal"
            ),
            Some(Isolation::Shared) => tracing::info!(
                pool,
                "all callers share server processes, and what these remember"
            ),
            None => {}
        }
    }
}

pub(crate) fn tell_withheld(settings: &Settings) {
    let pools = settings.pools.values();
    let servers: Vec<&StdioConfig> = pools.filter_map(|pool| server(&pool.backend)).collect();
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let names = withheld(&servers, names);
    if !names.is_empty() {
        // Logs only names, because values may be secrets.
        tracing::warn!(
            variables = names.join(" "),
            "no server gets these variables: a server's environment holds only what it is given; pass one on with \
             --env NAME before the --, all with --inherit, or by `inherit` in [pools.<name>.backend.stdio]"
        );
    }
}

fn server(backend: &Backend) -> Option<&StdioConfig> {
    match backend {
        Backend::Stdio(stdio) => Some(stdio.as_ref()),
        Backend::Http(_)
        | Backend::OpenApi(_)
        | Backend::Demo
        | Backend::Conformance
        | Backend::Handler => None,
    }
}

fn withheld(servers: &[&StdioConfig], names: impl Iterator<Item = String>) -> Vec<String> {
    let is_wanted = |name: &String| {
        let is_own = name.starts_with("SHOAL_") || name.starts_with("OTEL_");
        let ends = WANTED.iter().any(|end| name.ends_with(end));
        !is_own && (ends || CONFIGURES_TOOLS.iter().any(|begin| name.starts_with(begin)))
    };
    let is_withheld = |name: &String| {
        let gets = |server: &&StdioConfig| server.passes_on(name);
        is_wanted(name) && !servers.iter().any(gets)
            || servers.iter().any(|s| mentions(s, name) && !gets(s))
    };
    let mut names: Vec<String> = match servers.is_empty() {
        true => Vec::new(),
        false => names.filter(is_withheld).collect(),
    };
    names.sort();
    names
}

fn mentions(server: &StdioConfig, name: &str) -> bool {
    let marks = [
        format!("${name}"),
        format!("${{{name}}}"),
        format!("%{name}%"),
    ];
    let mut words = server.args.iter();
    words.any(|word| word == name || marks.iter().any(|mark| word.contains(mark)))
}

pub(crate) fn find(command: &str, path: &OsStr) -> Result<(), String> {
    if command.contains('/') {
        return is_program(Path::new(command));
    }
    let mut found = Err("there is no such program on the PATH".to_owned());
    for directory in std::env::split_paths(path) {
        match is_program(&directory.join(command)) {
            Ok(()) => return Ok(()),
            Err(reason) if directory.join(command).is_file() => found = Err(reason),
            Err(_) => {}
        }
    }
    found
}

#[cfg(unix)]
fn is_program(file: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    match std::fs::metadata(file) {
        Err(error) => Err(error.to_string()),
        Ok(about) if about.is_dir() => Err("it is a directory".to_owned()),
        Ok(about) if about.permissions().mode() & 0o111 == 0 => {
            Err("the file is not executable".to_owned())
        }
        Ok(_) => Ok(()),
    }
}

/// Systems other than Unix may complete a program's name with an ending such as `.exe`.
#[cfg(not(unix))]
fn is_program(_file: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use shoal_ports::Secret;
    use shoal_worker::StdioConfig;

    use super::{find, withheld};

    #[test]
    fn what_a_server_may_want_and_does_not_get_is_named() {
        let mut one = StdioConfig::new("npx");
        one.args = vec!["server".to_owned(), "--region=${REGION}".to_owned()];
        one.inherit = vec!["GIVEN_TOKEN".to_owned()];
        one.env.insert("SET_KEY".to_owned(), Secret::new("x"));
        let mut other = StdioConfig::new("other");
        other.inherit = vec!["AWS_*".to_owned()];
        let told = |servers: &[&StdioConfig]| {
            let names = [
                "PATH",
                "HOME",
                "GITHUB_TOKEN",
                "GIVEN_TOKEN",
                "SET_KEY",
                "AWS_SECRET_KEY",
                "DATABASE_URL",
                "REGION",
                "COLOR",
                "NPM_CONFIG_REGISTRY",
                "UV_INDEX_URL",
                "KUBECONFIG",
                "SHOAL_TOKEN",
            ];
            withheld(servers, names.into_iter().map(str::to_owned))
        };
        assert_eq!(
            told(&[&one, &other]),
            [
                "DATABASE_URL",
                "GITHUB_TOKEN",
                "KUBECONFIG",
                "NPM_CONFIG_REGISTRY",
                "REGION",
                "UV_INDEX_URL",
            ]
        );
        assert!(told(&[]).is_empty());
        other.inherit = vec!["*".to_owned()];
        assert_eq!(told(&[&other]), [""; 0]);
    }

    #[test]
    fn a_program_is_found_as_the_system_does() {
        let path = OsStr::new("/nowhere:/bin:/usr/bin");
        assert_eq!(find("sh", path), Ok(()));
        assert_eq!(find("/bin/sh", OsStr::new("")), Ok(()));
        for (command, reason) in [
            ("no-such-program", "no such program"),
            ("/does/not/exist", "No such file"),
            ("/etc/passwd", "not executable"),
            ("/etc", "directory"),
        ] {
            let told = find(command, path).unwrap_err();
            assert!(told.contains(reason), "{command}: {told}");
        }
    }
}
