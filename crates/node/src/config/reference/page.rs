//! Writes the reference page, `docs/configuration.md`.

use std::fmt::Write as _;

use serde_json::Value;

use super::{choices, default_of, inlined, is_table, members, text_of, variants};

const HEAD: &str = "\
# Configuration

<!-- Written by `shoal config doc`. Change the comments of the types that crates/node/src/config.rs names, then run it again. -->

Shoal needs no configuration. What it is told comes from four places, later ones over earlier ones:

1. the defaults below;
2. a TOML file, named by `--config` or by the variable `SHOAL_CONFIG`;
3. environment variables: `SHOAL_` and the setting's name in capitals, with two underscores between the
   parts: `SHOAL_SERVER__LISTEN=0.0.0.0:8080`, `SHOAL_POOLS__FILES__CONCURRENCY=8`. A value that is TOML (a
   number, `true`, `[\"a\", \"b\"]`, `{ file = \"/run/key\" }`) is read as such, anything else is text. Names
   without two underscores are left alone, but for `SHOAL_QUOTAS`: Kubernetes makes some for a service called `shoal`;
4. flags: `--listen`, `--admin`, `--roles`, `--store`, `--demo`, `--conformance`,
   `--openapi`, URLs, and a command after `--`.

Between the defaults and the file stand the variables that OpenTelemetry knows, where `[telemetry]` names them;
those for single signals, such as `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, are left alone.

Tables are merged key by key; a list is replaced as a whole. If a setting does not exist, or cannot have its value, the start ends with exit
code 2. Shoal prints all errors at once, each with its place and what to write instead:

```text
shoal: the configuration has 3 errors
  shoal.toml:2:1: server.lisen: there is no such setting; did you mean server.listen?
  shoal.toml:7:15: pools.files.concurrency: \"8\" is text: write the number without quotes
  the variable SHOAL_CALLS__TIMEOUT: calls.timeout: 30 has no unit: write \"30s\" for seconds, or \"30ms\" for milliseconds
```

`shoal config check` prints the same and starts nothing. It opens the files that the settings name. It warns about files and programs that are not on
this machine, because they need to be only where Shoal runs. `shoal config show` prints what is in force, without secrets, and `shoal config schema` prints a JSON Schema for editors. Times are written with their unit
(`\"500ms\"`, `\"30s\"`, `\"5m\"`, `\"1h 30m\"`).

```toml
[server]
listen = \"0.0.0.0:8080\"
allowed_hosts = [\"mcp.example.com\"]

[auth]
mode = \"tokens\"
tokens = [{ name = \"alice\", sha256 = \"<64 digits from shoal config hash-token>\" }]

[pools.files]
backend = { stdio = { command = \"npx\", args = [\"-y\", \"@modelcontextprotocol/server-filesystem\", \"/data\"] } }
prefix = \"files_\"
```
";

/// The whole page.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    let root = inlined();
    for (name, schema) in members(&root) {
        match schema.get("items").filter(|item| is_table(item)) {
            Some(item) => {
                heading(&mut page, &format!("[[{name}]]"), schema);
                rows(&mut page, item);
            }
            None => section(&mut page, &[name], schema),
        }
    }
    page
}

/// One table, then the tables in it.
fn section(page: &mut String, path: &[&str], schema: &Value) {
    if let Some(each) = schema
        .get("additionalProperties")
        .filter(|each| each.is_object())
    {
        let path = [path, &["<name>"]].concat();
        return section(page, &path, each);
    }
    heading(page, &format!("[{}]", path.join(".")), schema);
    rows(page, schema);
    tables_in(page, path, schema);
}

fn tables_in(page: &mut String, path: &[&str], schema: &Value) {
    for (name, member) in members(schema) {
        let path = [path, &[name]].concat();
        if has_section(member) || holds_sections(member) || is_optional_table(member) {
            section(page, &path, member);
        }
        if let Some(item) = member.get("items").filter(|item| is_table(item)) {
            heading(page, &format!("[[{}]]", path.join(".")), item);
            rows(page, item);
            tables_in(page, &path, item);
        }
        for variant in variants(member) {
            for (tag, content) in members(variant).filter(|(_, content)| is_table(content)) {
                section(page, &[&path, &[tag][..]].concat(), content);
            }
        }
    }
}

/// Whether it is a table of settings that is always there.
fn has_section(schema: &Value) -> bool {
    schema["type"] == "object" && schema.get("properties").is_some()
}

/// Whether it is a table of settings that may be left out. Its row says what that means.
fn is_optional_table(schema: &Value) -> bool {
    schema.get("properties").is_some() && schema["type"] == serde_json::json!(["object", "null"])
}

/// Whether it is a table of such tables, by names that are the operator's.
fn holds_sections(schema: &Value) -> bool {
    schema.get("additionalProperties").is_some_and(has_section)
}

fn heading(page: &mut String, title: &str, schema: &Value) {
    let _ = write!(page, "\n## `{title}`\n\n{}\n", text_of(schema));
}

fn rows(page: &mut String, schema: &Value) {
    page.push_str("\n| setting | default | |\n|---|---|---|\n");
    let required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|required| required == name))
    };
    // A table in it has a section of its own.
    let settings = members(schema).filter(|(_, member)| !has_section(member));
    for (name, member) in settings {
        let default = match default_of(member) {
            Some(default) => format!("`{default}`"),
            None if required(name) => "*required*".to_owned(),
            None => "*unset*".to_owned(),
        };
        let _ = writeln!(
            page,
            "| `{name}` | {default} | {}{} |",
            text_of(member).replace('|', "\\|"),
            meanings(member)
        );
    }
}

/// What each choice of an enumeration means.
fn meanings(schema: &Value) -> String {
    let named: Vec<String> = variants(schema)
        .into_iter()
        .filter_map(|variant| {
            let choice = choices(variant).into_iter().next()?;
            Some(format!("`{choice}`: {}", text_of(variant)))
        })
        .collect();
    if !named.is_empty() {
        return format!("<br>{}", named.join("<br>"));
    }
    match choices(schema).as_slice() {
        [] => String::new(),
        all => format!(" One of `{}`.", all.join("`, `")),
    }
}
