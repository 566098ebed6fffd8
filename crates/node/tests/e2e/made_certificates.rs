use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;

use crate::command::{Output, output};

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

    let renamed = [
        "certificates",
        "--name",
        "other",
        "--pool",
        "search_eu",
        place,
    ];
    let renamed = output(&renamed, "").await;
    assert_eq!(renamed.code, 1);
    let reason = "is a certificate for mcp.svc, and not for other";
    assert!(renamed.stderr.contains(reason), "{}", renamed.stderr);
    assert_eq!(content(directory.path()), made);
    let key = directory.path().join("nodes").join("tls.key");
    assert_eq!(
        fs::metadata(key).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

async fn make(directory: &Path) -> Output {
    let place = directory.to_str().unwrap();
    output(&["certificates", "--pool", "search-eu", place], "").await
}

#[tokio::test]
async fn unusable_certificates_are_made_again() {
    let directory = TempDir::new().unwrap();
    let nodes = |file: &str| directory.path().join("nodes").join(file);
    let pool = directory.path().join("pool-search-eu");
    let first = make(directory.path()).await;
    assert_eq!(first.code, 0, "{}", first.stderr);

    let certificate = fs::read(nodes("tls.crt")).unwrap();
    let others = fs::read(pool.join("tls.key")).unwrap();
    let cases: [(&str, &[u8], &str); 5] = [
        // The files are as after a run that was killed when it had replaced only the key.
        (
            "tls.key",
            &others,
            "its key belonged to another certificate",
        ),
        ("tls.key", b"", "a file was missing"),
        ("tls.crt", b"no certificate", "tls.crt held no certificate"),
        ("tls.key", b"no key", "tls.key held no key"),
        (
            "ca.crt",
            &certificate,
            "its ca.crt did not hold the authority",
        ),
    ];
    for (file, content, reason) in cases {
        fs::write(nodes(file), content).unwrap();
        let again = make(directory.path()).await;
        assert_eq!(again.code, 0, "{}", again.stderr);
        let line = format!("nodes again: {reason}");
        assert!(again.stdout.contains(&line), "{}", again.stdout);
        assert_eq!(again.stdout.matches("kept ").count(), 2, "{}", again.stdout);
        let settled = make(directory.path()).await;
        assert_eq!(
            settled.stdout.matches("kept ").count(),
            3,
            "{}",
            settled.stdout
        );
    }
}

#[tokio::test]
async fn a_missing_authority_is_not_made_anew_beside_its_certificates() {
    let directory = TempDir::new().unwrap();
    assert_eq!(make(directory.path()).await.code, 0);
    let before = content(directory.path());
    let (authority, away) = (
        directory.path().join("authority"),
        directory.path().join("away"),
    );
    fs::rename(&authority, &away).unwrap();
    let without = make(directory.path()).await;
    assert_eq!(without.code, 1);
    assert!(
        without.stderr.contains("authority is missing"),
        "{}",
        without.stderr
    );
    assert!(!authority.exists());

    fs::rename(&away, &authority).unwrap();
    fs::remove_file(authority.join("tls.key")).unwrap();
    let half = make(directory.path()).await;
    assert_eq!(half.code, 1);
    assert!(
        half.stderr.contains("tls.key is missing"),
        "{}",
        half.stderr
    );
    fs::write(authority.join("tls.key"), &before[0]).unwrap();
    assert_eq!(content(directory.path()), before);
}

/// First everyone trusts the new authority, then it issues certificates.
#[tokio::test]
async fn trusted_authorities_stay_in_the_bundle() {
    let (old, new) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for directory in [&old, &new] {
        assert_eq!(make(directory.path()).await.code, 0);
    }
    let authority = |of: &TempDir| fs::read_to_string(of.path().join("authority/tls.crt")).unwrap();
    let bundle = old.path().join("nodes/ca.crt");
    let both = authority(&old) + &authority(&new);
    fs::write(&bundle, &both).unwrap();
    let kept = make(old.path()).await;
    assert_eq!(kept.stdout.matches("kept ").count(), 3, "{}", kept.stdout);

    for file in ["tls.crt", "tls.key"] {
        let file = Path::new("authority").join(file);
        fs::copy(new.path().join(&file), old.path().join(&file)).unwrap();
    }
    let changed = make(old.path()).await;
    let reason = "another authority had issued it";
    assert_eq!(
        changed.stdout.matches(reason).count(),
        2,
        "{}",
        changed.stdout
    );
    assert_eq!(fs::read_to_string(&bundle).unwrap(), both);
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
        // A worker's certificate is not valid for nodes.
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
        (&["certificates", "--name", "*.shoal", "/tmp"], "a DNS name"),
        (&["certificates", "--name", "a,b", "/tmp"], "a DNS name"),
        (
            &["certificates", "--name", "10.0.0.1", "/tmp"],
            "a DNS name",
        ),
    ] {
        let done = output(words, "").await;
        assert_ne!(done.code, 0);
        assert!(done.stderr.contains(part), "{}", done.stderr);
    }
}
