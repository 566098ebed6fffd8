//! The crate `shoal-mcp`, on which server authors depend, and its dependencies must be publishable.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use shoal_testkit::directory::Directory;

const DOOR: &str = "shoal-mcp";

const METADATA: [&str; 4] = ["description", "license", "repository", "rust_version"];

fn packages() -> Vec<Value> {
    let metadata = cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ]);
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn cargo(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO"))
        .args(arguments)
        .output()
        .unwrap()
}

fn named<'a>(packages: &'a [Value], name: &str) -> &'a Value {
    let mut packages = packages.iter();
    packages.find(|package| package["name"] == name).unwrap()
}

/// Cargo leaves out dev-dependencies without a version.
fn own(package: &Value) -> impl Iterator<Item = &Value> {
    let dependencies = package["dependencies"].as_array().unwrap();
    let is_left_out = |it: &Value| it["kind"] == "dev" && it["req"] == "*";
    let own = dependencies.iter().filter(|it| it["path"].is_string());
    own.filter(move |it| !is_left_out(it))
}

fn published(packages: &[Value]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![DOOR.to_owned()];
    while let Some(name) = open.pop() {
        let package = named(packages, &name);
        // A dev-dependency with a version must be published as well.
        open.extend(own(package).map(|it| it["name"].as_str().unwrap().to_owned()));
        open.retain(|name| !found.contains(name));
        found.insert(name);
    }
    found
}

#[test]
fn what_an_author_depends_on_says_what_a_registry_asks_for() {
    let packages = packages();
    for name in published(&packages) {
        let package = named(&packages, &name);
        for field in METADATA {
            let said = package[field].as_str().unwrap_or_default();
            assert!(!said.is_empty(), "{name} has no {field}");
        }
        assert_eq!(package["publish"], Value::Null, "{name} is not published");
        for dependency in own(package) {
            let version = dependency["req"].as_str().unwrap();
            assert_ne!(version, "*", "{name} depends on any {}", dependency["name"]);
        }
    }
    for tool in ["shoal-testkit", "loadtest"] {
        let package = named(&packages, tool);
        assert_eq!(
            package["publish"],
            serde_json::json!([]),
            "{tool} is for this repository"
        );
    }
}

#[test]
fn packages_hold_all_that_they_are_built_from() {
    let directory = Directory::create("packages").unwrap();
    let target = directory.file("target");
    let names = published(&packages());
    let mut arguments = vec![
        "package",
        "--no-verify",
        "--allow-dirty",
        "--offline",
        "--target-dir",
        target.to_str().unwrap(),
    ];
    for name in &names {
        arguments.extend(["--package", name]);
    }
    let packaged = cargo(&arguments);
    let told = String::from_utf8(packaged.stderr).unwrap();
    assert!(packaged.status.success(), "{told}");
    assert!(!told.contains("warning"), "{told}");
    for name in names {
        let file = target.join(format!(
            "package/{name}-{}.crate",
            env!("CARGO_PKG_VERSION")
        ));
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(&file).arg("-C").arg(&target);
        assert!(unpack.status().unwrap().success(), "{}", file.display());
        let package = target.join(file.file_stem().unwrap());
        let mut sources = Vec::new();
        rust_files(&package.join("src"), &mut sources);
        sources.extend(
            [package.join("build.rs")]
                .into_iter()
                .filter(|it| it.is_file()),
        );
        assert!(sources.len() > 1, "{name}");
        for source in sources.iter().filter(|source| !is_test(source)) {
            let text = fs::read_to_string(source).unwrap();
            for used in used_files(&text) {
                let from = source.parent().unwrap();
                let file = normal(&from.join(&used));
                let is_inside = file.starts_with(&package) && file.exists();
                assert!(is_inside, "{name}: {} uses {used}", source.display());
            }
        }
    }
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => rust_files(&path, found),
            false if path.extension().is_some_and(|it| it == "rs") => found.push(path),
            false => {}
        }
    }
}

fn is_test(file: &Path) -> bool {
    let mut parts = file.iter();
    parts.any(|part| part == "tests" || part == "tests.rs")
}

fn used_files(text: &str) -> Vec<String> {
    let product = text.split("#[cfg(test)]").next().unwrap();
    let includes = product.split("include_str!(\"").skip(1);
    let bytes = product.split("include_bytes!(\"").skip(1);
    let contracts = product.split("const INCLUDE: &str = \"").skip(1);
    includes
        .chain(bytes)
        .chain(contracts)
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect()
}

fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}
