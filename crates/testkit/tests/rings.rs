//! Checks the rings of `docs/architecture.md`: a crate may depend only on lower rings.

use std::collections::HashMap;
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
    ("loadtest", 5),
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
            // The lower rings have two levels, and the second crate may depend on the first.
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
