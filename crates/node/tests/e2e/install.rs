use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::command::output;
use crate::process::Server;

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("install-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place).unwrap();
        Self(place)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn version_of(program: &str) -> String {
    let output = Command::new(program).arg("--version").output().await;
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[tokio::test]
async fn the_copy_runs_and_replaces_what_was_there() {
    let place = Place::new("copy");
    let target = place.path("other-name");
    fs::write(&target, "something older").unwrap();
    let done = output(&["install", &target], "").await;
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(done.stdout.trim(), target);
    assert_eq!(
        fs::metadata(&target).unwrap().permissions().mode() & 0o777,
        0o755
    );
    assert!(version_of(&target).await.starts_with("shoal "));
    assert_eq!(place.files(), ["other-name"]);
}

#[tokio::test]
async fn into_a_directory_it_keeps_its_name() {
    let place = Place::new("directory");
    let directory = place.path("");
    for _ in 0..2 {
        let done = output(&["install", &directory], "").await;
        assert_eq!(done.code, 0, "{}", done.stderr);
    }
    assert_eq!(place.files(), ["shoal"]);
    assert!(version_of(&place.path("shoal")).await.starts_with("shoal "));
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_named() {
    let place = Place::new("missing");
    let target = place.path("no-such-directory/shoal");
    let done = output(&["install", &target], "").await;
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains(&target), "{}", done.stderr);
    assert!(done.stderr.contains("writable"), "{}", done.stderr);
}

#[tokio::test]
async fn readiness_is_an_exit_code() {
    // The shutdown waits until the test kills the process.
    let delay = [("SHOAL_SHUTDOWN__BALANCER_DELAY", "1h")];
    let server = Server::start_with(&["--demo"], &delay).await;
    let question = ["status", "--ready", "--admin", &server.admin];
    let ready = output(&question, "").await;
    assert_eq!(
        (ready.code, ready.stdout.trim()),
        (0, "ready"),
        "{}",
        ready.stderr
    );

    server.signal(Signal::SIGTERM);
    server.wait_for_readiness(503).await;
    let draining = output(&question, "").await;
    assert_eq!(draining.code, 1);
    for part in ["draining", "shutting down"] {
        assert!(draining.stderr.contains(part), "{}", draining.stderr);
    }
}

#[tokio::test]
async fn nobody_there_is_not_ready() {
    // Another program may take this free port next, but would not serve it as an admin port.
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let nobody = output(&["status", "--ready", "--admin", &free.to_string()], "").await;
    assert_eq!(nobody.code, 1);
    assert_eq!(nobody.stdout, "");
    assert!(nobody.stderr.contains("server.admin"), "{}", nobody.stderr);
}
