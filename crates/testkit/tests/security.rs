//! The tests that `docs/security.md` names must exist.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

#[test]
fn every_test_that_the_threat_model_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let mut there = HashSet::new();
    collect(&root.join("crates"), &mut there).unwrap();
    let is_name = |word: &&str| {
        word.contains('_')
            && word
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '_')
    };
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(is_name).collect();
    assert!(named.len() > 10, "the page names its tests in backticks");
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !there.contains(**name))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/security.md names tests that are not there: {missing:?}"
    );
}

fn collect(directory: &Path, there: &mut HashSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, there)?;
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            there.extend(tests_of(&fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

fn tests_of(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        let line = line.strip_prefix("async ").unwrap_or(line);
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(rest) = line.strip_prefix("fn ")
            && std::mem::take(&mut is_test)
        {
            names.extend(rest.split(['(', '<']).next().map(str::to_owned));
        }
    }
    names
}
