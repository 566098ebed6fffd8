//! `shoal certificates`: what processes of a cluster show one another.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;

use crate::command::output;

const CERTIFICATES: [&str; 3] = ["authority", "nodes", "pool-search-eu"];

fn content(directory: &Path) -> Vec<Vec<u8>> {
    let key = |certificate| fs::read(directory.join(certificate).join("tls.key")).unwrap();
    CERTIFICATES.map(key).into()
}

#[tokio::test]
async fn what_is_right_stays() {
    let directory = TempDir::new().unwrap();
    let place = directory.path().to_str().unwrap();
    let words = [
        "certificates",
        "--name",
        "mcp.svc",
        "--pool",
        "search_eu",
        place,
    ];
    let first = output(&words, "").await;
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert_eq!(first.stdout.matches("made ").count(), 3, "{}", first.stdout);
    let made = content(directory.path());

    let again = output(&words, "").await;
    assert_eq!(again.stdout.matches("kept ").count(), 3, "{}", again.stdout);
    assert_eq!(content(directory.path()), made);

    // Another name needs other certificates, of the same authority.
    let renamed = [
        "certificates",
        "--name",
        "other",
        "--pool",
        "search_eu",
        place,
    ];
    let renamed = output(&renamed, "").await;
    assert_eq!(
        renamed.stdout.matches("made ").count(),
        2,
        "{}",
        renamed.stdout
    );
    let now = content(directory.path());
    assert_eq!(now[0], made[0]);
    assert!(now[1] != made[1] && now[2] != made[2]);
    let key = directory.path().join("nodes").join("tls.key");
    assert_eq!(
        fs::metadata(key).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[tokio::test]
async fn processes_can_use_them() {
    let directory = TempDir::new().unwrap();
    let place = directory.path().to_str().unwrap();
    let made = output(&["certificates", "--pool", "search", place], "").await;
    assert_eq!(made.code, 0, "{}", made.stderr);
    for (certificate, roles, code) in [
        ("nodes", "edge,session", 0),
        ("pool-search", "worker", 0),
        // A worker's certificate makes no node.
        ("pool-search", "edge,session", 2),
    ] {
        let files = directory.path().join(certificate);
        let file = |name| files.join(name).display().to_string();
        let config = directory.path().join("shoal.toml");
        let text = format!(
            "[node]\nroles = {:?}\n[cluster]\nlisten = \"127.0.0.1:7000\"\njoin = [\"127.0.0.1:7000\"]\n[cluster.tls]\ncertificate = {:?}\nkey = {:?}\nauthority = {:?}\n\
             [pools.search]\nbackend = \"demo\"\n",
            roles.split(',').collect::<Vec<_>>(),
            file("tls.crt"),
            file("tls.key"),
            file("ca.crt"),
        );
        fs::write(&config, text).unwrap();
        let checked = output(
            &["config", "check", "--config", config.to_str().unwrap()],
            "",
        )
        .await;
        assert_eq!(checked.code, code, "{certificate}: {}", checked.stderr);
    }
}

#[tokio::test]
async fn mistakes_say_what_to_do() {
    for (words, part) in [
        (&["certificates", "/no/such/directory"][..], "must exist"),
        (&["certificates", "--secrets", "shoal"], "only in a pod"),
        (&["certificates", "--pool", "Search", "/tmp"], "a-z"),
    ] {
        let done = output(words, "").await;
        assert_ne!(done.code, 0);
        assert!(done.stderr.contains(part), "{}", done.stderr);
    }
}
