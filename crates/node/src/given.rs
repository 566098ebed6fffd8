//! The stdio server that the command line gives, after `--`.

use std::ffi::OsStr;
use std::path::Path;

use shoal_worker::StdioConfig;

use crate::cli::Pools;
use crate::config::{Backend, Settings};
use crate::exit::Failure;

/// How names end that a server most likely wants.
const WANTED: [&str; 5] = ["_TOKEN", "_KEY", "_SECRET", "_PASSWORD", "_URL"];

/// Fails unless the server can be started at all. Whoever has just typed it is there to read why; a pool of the
/// configuration is tried again and again, and tells operators meanwhile.
///
/// # Errors
/// When there is no such program, or it is none.
pub(crate) fn check(pools: &Pools, settings: &Settings) -> Result<(), Failure> {
    let Some(config) = backend(pools, settings) else {
        return Ok(());
    };
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

/// Says which variables of Shoal's own environment the server does not get although it may want them.
pub(crate) fn tell_withheld(pools: &Pools, settings: &Settings) {
    let Some(config) = backend(pools, settings) else {
        return;
    };
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let names = withheld(config, &pools.server, names);
    if !names.is_empty() {
        // Names only: values are secrets.
        tracing::warn!(
            variables = names.join(" "),
            "the server does not get these variables: a server's environment holds only what it is given; \
             pass a variable on with --env NAME before the --"
        );
    }
}

fn backend<'a>(pools: &Pools, settings: &'a Settings) -> Option<&'a StdioConfig> {
    if pools.server.is_empty() {
        return None;
    }
    match &settings.pools.get(Pools::SERVER)?.backend {
        Backend::Stdio(stdio) => Some(stdio.as_ref()),
        Backend::Demo | Backend::Conformance => None,
    }
}

fn withheld(
    config: &StdioConfig,
    command: &[String],
    names: impl Iterator<Item = String>,
) -> Vec<String> {
    let mentioned = |name: &str| {
        let marks = [
            format!("${name}"),
            format!("${{{name}}}"),
            format!("%{name}%"),
        ];
        let mut words = command.iter();
        words.any(|word| word == name || marks.iter().any(|mark| word.contains(mark)))
    };
    let wanted = |name: &String| {
        let is_own = name.starts_with("SHOAL_") || name.starts_with("OTEL_");
        let looks_wanted = WANTED.iter().any(|end| name.ends_with(end)) && !is_own;
        (looks_wanted || mentioned(name)) && !config.passes_on(name)
    };
    let mut names: Vec<String> = names.filter(wanted).collect();
    names.sort();
    names
}

/// Finds a program as the operating system will.
fn find(command: &str, path: &OsStr) -> Result<(), String> {
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

/// Elsewhere names have endings that are not written.
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
        let mut config = StdioConfig::new("npx");
        config.inherit = vec!["GIVEN_TOKEN".to_owned()];
        config.env.insert("SET_KEY".to_owned(), Secret::new("x"));
        let names = [
            "PATH",
            "HOME",
            "GITHUB_TOKEN",
            "GIVEN_TOKEN",
            "SET_KEY",
            "DATABASE_URL",
            "REGION",
            "COLOR",
            "SHOAL_TOKEN",
        ];
        let command = ["npx", "server", "--region=${REGION}"].map(str::to_owned);
        let names = names.into_iter().map(str::to_owned);
        assert_eq!(
            withheld(&config, &command, names),
            ["DATABASE_URL", "GITHUB_TOKEN", "REGION"]
        );
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
