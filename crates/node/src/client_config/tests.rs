use clap::Parser as _;

use super::text;
use crate::cli::{Cli, ClientConfig, Command};
use crate::exit::Failure;

/// The program's path in `docs/clients.md`.
const PROGRAM: &str = "/usr/local/bin/shoal";

fn parse(words: &[String]) -> ClientConfig {
    match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Some(Command::ClientConfig(command))) => command,
        other => panic!("{words:?}: {other:?}"),
    }
}

fn printed(line: &str) -> Result<String, Failure> {
    text(&parse(&words(line)), PROGRAM)
}

fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

#[test]
fn the_page_shows_what_is_printed() {
    let page = include_str!("../../../../docs/clients.md");
    let mut shown = 0;
    for block in page.split("```sh\nshoal client-config ").skip(1) {
        let (line, rest) = block.split_once('\n').unwrap();
        let json = rest.split("```json\n").nth(1).unwrap();
        let json = json.split("```").next().unwrap();
        let printed = printed(&format!("shoal client-config {line}")).unwrap();
        assert_eq!(printed, json, "{line}");
        shown += 1;
    }
    assert!(shown >= 10, "{shown}");
}

#[test]
fn a_client_that_starts_shoal_gives_it_the_token() {
    let line = "shoal client-config cursor --stdio --url https://a/mcp --header";
    let given = printed(&format!("{line} 'authorization: Bearer abc'")).unwrap();
    assert!(given.contains(r#""SHOAL_TOKEN": "abc""#), "{given}");
    let refused = printed(&format!("{line} 'X-Tenant: acme'")).unwrap_err();
    assert!(refused.to_string().contains("X-Tenant"), "{refused}");
    assert_eq!(refused.code(), 2);
}

#[test]
fn what_is_no_endpoint_is_refused() {
    for url in [
        "not a url",
        "localhost:8080/mcp",
        "ftp://a/mcp",
        "file:///mcp",
    ] {
        for how in ["", "--stdio"] {
            let line = format!("shoal client-config cursor {how} --url '{url}'");
            let refused = printed(&line).unwrap_err();
            assert_eq!(refused.code(), 2, "{line}");
            assert!(refused.to_string().contains(url), "{refused}");
        }
    }
}

#[test]
fn what_is_no_header_and_no_variable_is_refused() {
    for line in [
        "shoal client-config emacs",
        "shoal client-config cursor --header token",
        "shoal client-config cursor --header 'a b: c'",
        "shoal client-config cursor --env A=b",
        "shoal client-config cursor --env A -- npx",
        "shoal client-config cursor --url http://a/mcp -- npx",
    ] {
        assert!(Cli::try_parse_from(words(line)).is_err(), "{line}");
    }
}
