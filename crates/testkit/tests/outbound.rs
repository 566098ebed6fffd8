//! HTTP clients for other servers are built in one place, which checks destinations.

use std::fs;
use std::path::{Path, PathBuf};

/// Files that may build HTTP clients. The clients of all but `outbound` connect only to addresses
/// that the operator named, or to the Kubernetes API.
const MAKERS: [&str; 5] = [
    "node/src/certificates_command/secrets.rs",
    "node/src/status_command.rs",
    "node/src/stdio/exchange/remote.rs",
    "outbound/src/client.rs",
    "telemetry/src/export/http.rs",
];

const WAYS: [&str; 6] = [
    "Client::builder()",
    "Client::new()",
    "ClientBuilder",
    "reqwest::get(",
    "Client::default()",
    "use reqwest::Client;",
];

#[test]
fn clients_are_made_in_one_place() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for member in fs::read_dir(crates).unwrap() {
        let member = member.unwrap().path();
        if !member.ends_with("testkit") {
            collect(&member.join("src"), &mut files);
        }
    }
    let is_maker = |file: &&PathBuf| {
        let text = fs::read_to_string(file).unwrap();
        text.contains("reqwest") && WAYS.iter().any(|way| text.contains(way))
    };
    let makers = files.iter().filter(is_maker);
    let mut makers: Vec<_> = makers
        .map(|file| file.strip_prefix(crates).unwrap())
        .collect();
    makers.sort();
    assert_eq!(makers, MAKERS.map(Path::new));
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.file_name().is_some_and(|name| name == "tests") {
            continue;
        }
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}
