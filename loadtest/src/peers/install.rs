use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Peer, Registry};

const STEP_TIMEOUT: Duration = Duration::from_secs(900);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Marks a complete installation, and contains the text of the peer's files.
const STAMP: &str = "installed";

/// Installs the peer, unless the same files are installed. Blocks.
pub(crate) fn install(peer: &Peer, peers: &Path, progress: impl Fn(&str)) -> Result<(), String> {
    let home = peer.home(peers);
    // A changed source needs a new build.
    let stamp: String = peer.files.iter().map(|(_, text)| *text).collect();
    if fs::read_to_string(home.join(STAMP)).is_ok_and(|installed| installed == stamp) {
        return Ok(());
    }
    progress(&format!("installing {} in {}", peer.name, home.display()));
    write_files(peer, &home)
        .map_err(|cause| format!("could not write to {}: {cause}", home.display()))?;
    for step in steps(peer.registry, &home) {
        carry_out(step, peer.registry, &home)?;
    }
    fs::write(home.join(STAMP), stamp)
        .map_err(|cause| format!("could not write to {}: {cause}", home.display()))
}

/// Leftovers may not match the files.
fn write_files(peer: &Peer, home: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(home) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(cause),
        _ => {}
    }
    fs::create_dir_all(home)?;
    for (name, text) in peer.files {
        fs::write(home.join(name), text)?;
    }
    Ok(())
}

fn steps(registry: Registry, home: &Path) -> Vec<Command> {
    let command = |program: PathBuf, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(home);
        command
    };
    match registry {
        // The packages here need no install scripts.
        Registry::Npm => vec![command(
            "npm".into(),
            &["ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        )],
        Registry::PyPi => vec![
            command("python3".into(), &["-m", "venv", "venv"]),
            command(
                home.join("venv/bin/pip"),
                &[
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--requirement",
                    "requirements.txt",
                ],
            ),
        ],
        Registry::Go => vec![command("go".into(), &["build", "-o", "server", "."])],
    }
}

fn how_to_get(registry: Registry) -> &'static str {
    match registry {
        Registry::Npm => "install Node.js 20.3 or later with npm (apt-get install nodejs npm)",
        Registry::PyPi => {
            "install Python 3.10 or later with venv (apt-get install python3 python3-venv)"
        }
        Registry::Go => "install Go 1.25.5 or later (https://go.dev/dl)",
    }
}

fn carry_out(mut step: Command, registry: Registry, home: &Path) -> Result<(), String> {
    let what = step.get_program().to_string_lossy().into_owned();
    let log = home.join("install.log");
    let to_log = || -> std::io::Result<(Stdio, Stdio)> {
        let file = File::options().create(true).append(true).open(&log)?;
        Ok((file.try_clone()?.into(), file.into()))
    };
    let (out, err) =
        to_log().map_err(|cause| format!("could not write {}: {cause}", log.display()))?;
    step.stdin(Stdio::null()).stdout(out).stderr(err);
    let mut child = step.spawn().map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => format!("{what} is not installed: {}", how_to_get(registry)),
        _ => format!("could not start {what}: {cause}"),
    })?;
    let deadline = Instant::now() + STEP_TIMEOUT;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOK_EVERY),
            ended => {
                // The installation must not continue during the measurement.
                let _ = child.kill();
                let _ = child.wait();
                return Err(match ended {
                    Ok(_) => format!("{what} was not done within {} s", STEP_TIMEOUT.as_secs()),
                    Err(cause) => format!("could not wait for {what}: {cause}"),
                });
            }
        }
    };
    if status.success() {
        return Ok(());
    }
    Err(format!(
        "{what} failed ({status}): read {}, and {} if it is too old",
        log.display(),
        how_to_get(registry)
    ))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;

    use super::{Registry, carry_out};

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn a_missing_tool_is_named_with_the_way_to_get_it() {
        let home = directory("loadtest-peers-missing");
        let step = Command::new("no-such-program-anywhere");
        let why = carry_out(step, Registry::Go, &home).unwrap_err();
        assert_eq!(
            why,
            "no-such-program-anywhere is not installed: install Go 1.25.5 or later (https://go.dev/dl)"
        );
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn a_failed_step_points_to_its_log() {
        let home = directory("loadtest-peers-failed");
        let mut step = Command::new("sh");
        step.args(["-c", "echo no such package; exit 3"]);
        let why = carry_out(step, Registry::Npm, &home).unwrap_err();
        let log = home.join("install.log");
        assert!(why.contains(&log.display().to_string()), "{why}");
        assert_eq!(std::fs::read_to_string(log).unwrap(), "no such package\n");
        std::fs::remove_dir_all(home).unwrap();
    }
}
