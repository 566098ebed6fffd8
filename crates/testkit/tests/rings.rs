//! Compares `docs/architecture.md` with the code: the rings of the crates, and the forms of a call.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const RINGS: [(&str, u8); 19] = [
    ("shoal-protocol", 1),
    ("shoal-ports", 1),
    ("shoal-telemetry", 2),
    ("shoal-rpc", 2),
    ("shoal-policy", 2),
    ("shoal-outbound", 2),
    ("shoal-cluster", 3),
    ("shoal-store-redis", 3),
    ("shoal-auth", 3),
    ("shoal-controller", 3),
    ("shoal-edge", 3),
    ("shoal-session", 3),
    ("shoal-dispatch", 3),
    ("shoal-worker", 3),
    ("shoal-demo", 3),
    ("shoal-node", 4),
    ("shoal-mcp", 5),
    ("shoal-testkit", 5),
    ("loadtest", 6),
];

#[test]
fn crates_depend_on_lower_rings_only() {
    let metadata = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).expect("JSON");
    let rings: HashMap<&str, u8> = RINGS.into_iter().collect();
    let packages = metadata["packages"].as_array().expect("packages");
    let mut broken = Vec::new();
    for package in packages {
        let name = package["name"].as_str().expect("a name");
        let Some(ring) = rings.get(name) else {
            panic!("{name} has no ring: give it one here and in docs/architecture.md")
        };
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            // Tests may depend on crates of the same ring.
            let is_code = dependency["kind"].is_null();
            let on = dependency["name"].as_str().expect("a name");
            // Rings 1 and 2 have two levels: the ring's other crates may depend on `protocol` or
            // `telemetry`.
            let is_floor = [("shoal-protocol", 1), ("shoal-telemetry", 2)].contains(&(on, *ring));
            if let Some(below) =
                (rings.get(on)).filter(|below| is_code && !is_floor && *below >= ring)
            {
                broken.push(format!(
                    "{name} (ring {ring}) depends on {on} (ring {below})"
                ));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert_eq!(
        packages.len(),
        RINGS.len(),
        "a ring names a crate that is gone"
    );
}

const MOST_FORMS: usize = 11;

/// The crates that a journaled call passes through.
const CARRIERS: [&str; 4] = ["ports", "session", "dispatch", "worker"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("tests") {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

fn declared(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("struct ")?;
    (before.is_empty() || before.starts_with("pub")).then_some(())?;
    rest.split(|letter: char| !letter.is_alphanumeric()).next()
}

fn field(line: &str) -> Option<&str> {
    let (_, kind) = line.trim().strip_suffix(',')?.split_once(": ")?;
    let kind = kind.strip_suffix('>').unwrap_or(kind);
    let boxed = ["Box<", "Option<"];
    let inner = boxed.iter().find_map(|around| kind.strip_prefix(around));
    Some(inner.unwrap_or(kind))
}

#[test]
fn the_page_names_the_forms_of_a_call() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).expect("the page");
    let (_, section) = page
        .split_once("## The forms of a call")
        .expect("a section");
    let (section, _) = section.split_once("\n## ").expect("a next section");
    let table = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    let forms: Vec<(&str, &str)> = rows
        .map(|row| {
            let named: Vec<_> = row.split('`').skip(1).step_by(2).collect();
            (named[0], *named.last().expect("a file"))
        })
        .collect();
    assert!((2..=MOST_FORMS).contains(&forms.len()), "{forms:?}");
    for (form, file) in &forms {
        let text = fs::read_to_string(root().join("crates").join(file)).expect("the file");
        let is_there = text.lines().any(|line| declared(line) == Some(form));
        assert!(is_there, "{file} does not declare {form}");
    }
    let mut files = Vec::new();
    for carrier in CARRIERS {
        sources(&root().join("crates").join(carrier).join("src"), &mut files);
    }
    let mut unnamed = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        let (code, _) = text.split_once("#[cfg(test)]\nmod ").unwrap_or((&text, ""));
        let mut holder = None;
        for line in code.lines() {
            holder = declared(line).or(holder.filter(|_| line != "}"));
            let holds = field(line).is_some_and(|kind| forms.iter().any(|(form, _)| *form == kind));
            if let Some(name) = holder.filter(|_| holds && line.starts_with("    "))
                && !section.contains(&format!("`{name}`"))
            {
                unnamed.push(format!("{}: {name}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(
        unnamed.is_empty(),
        "docs/architecture.md does not name these forms of a call:\n{}",
        unnamed.join("\n")
    );
}
