use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::{choices, default_of, inlined, is_table, members, text_of, variants};

const HEAD: &str = "\
# Configuration

<!-- Written by `shoal config doc` from the comments of the settings in crates. -->

To change settings, write a TOML file and start `shoal serve --config shoal.toml`:

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

Shoal reads settings from four sources. Later sources override earlier ones:

1. The defaults, which the tables show below the settings' names. A setting without a default is unset. In `[telemetry]`, the OpenTelemetry variables in parentheses replace defaults.
   Shoal ignores variables for single signals, such as `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`.
2. Your TOML file, which `--config` or the variable `SHOAL_CONFIG` names.
3. Environment variables. For example, `SHOAL_POOLS__FILES__CONCURRENCY=8`, with two underscores between the parts, sets `pools.files.concurrency`. A value is TOML, such as `[\"a\", \"b\"]`, or text.
   `SHOAL_QUOTAS` sets `[[quotas]]`. Shoal ignores other `SHOAL_…` variables without two underscores.
4. Flags, such as `--listen`.

If several sources set parts of a table, Shoal merges these parts. A later list replaces an earlier one. Write times with their unit, such as `\"1h 30m\"`. Where you list tools, prompts, resources, methods, principals, tags or paths, `*` matches any characters.

`shoal config check` checks your configuration and the files that it names. Missing files and programs only cause warnings. Relative paths start at the working directory of the process.
`shoal config show` prints the settings in force without secrets. `shoal config schema` prints a JSON Schema for your editor.

If your configuration has errors, Shoal prints each with its file, line and column, or with its variable, and exits with code 2.

Below, a *node* is an [edge](concepts/edge.md) or [session node](concepts/session.md). *Legacy* means MCP up to 2025-11-25, *modern* means 2026-07-28 ([eras](concepts/era.md)). By default, a call is *safe to repeat*
if its tool has `readOnlyHint` or `idempotentHint`. See also [pool](concepts/pool.md), [worker](concepts/worker.md), [principal](concepts/principal.md), and [hold and journal](concepts/hold.md).
";

/// Minimum number of rows, equal to rows of an earlier section, to replace by a link to it.
const FEWEST_SHARED: usize = 3;
/// The same minimum for two sections of one table of the configuration.
const FEWEST_SHARED_NEAR: usize = 2;

/// Begins the description of a setting `NAME_per_principal` that shares a row with the setting `NAME`.
const PER_PRINCIPAL: &str = "For each principal: ";

/// Returns the page.
pub fn markdown() -> String {
    let mut page = ReferencePage {
        text: HEAD.to_owned(),
        sections: Vec::new(),
    };
    let root = inlined();
    for (name, schema) in members(&root) {
        match schema.get("items").filter(|item| is_table(item)) {
            Some(item) => page.table(&format!("[[{name}]]"), text_of(schema), item),
            None => page.section(&[name], schema),
        }
    }
    page.text
}

struct ReferencePage {
    text: String,
    /// Earlier sections, with their rows.
    sections: Vec<(String, HashSet<String>)>,
}

impl ReferencePage {
    fn section(&mut self, path: &[&str], schema: &Value) {
        if let Some(each) = schema
            .get("additionalProperties")
            .filter(|each| each.is_object())
        {
            let path = [path, &["<name>"]].concat();
            return self.section(&path, each);
        }
        self.table(&format!("[{}]", path.join(".")), text_of(schema), schema);
        self.tables_in(path, schema);
    }

    fn tables_in(&mut self, path: &[&str], schema: &Value) {
        for (name, member) in members(schema) {
            let path = [path, &[name]].concat();
            if has_section(member) || holds_sections(member) {
                self.section(&path, member);
            }
            if let Some(item) = member.get("items").filter(|item| is_table(item)) {
                let title = format!("[[{}]]", path.join("."));
                self.table(&title, text_of(item), item);
                self.tables_in(&path, item);
            }
            for variant in variants(member) {
                for (tag, content) in members(variant).filter(|(_, content)| is_table(content)) {
                    self.section(&[&path, &[tag][..]].concat(), content);
                }
            }
        }
    }

    /// Writes a section, with a link in place of rows that an earlier section has.
    fn table(&mut self, title: &str, text: String, schema: &Value) {
        let _ = write!(self.text, "\n## `{title}`\n\n{text}\n");
        let rows = rows(schema);
        let nearest = self.nearest(title, &rows);
        let (shared, own): (Vec<_>, Vec<_>) = match nearest {
            Some((_, known)) => rows.iter().partition(|(_, row)| known.contains(row)),
            None => (Vec::new(), rows.iter().collect()),
        };
        let names: Vec<String> = shared.iter().map(|(name, _)| format!("`{name}`")).collect();
        let link = nearest.map(|(first, _)| {
            let (anchor, names) = (anchor(first), names.join(", "));
            format!("\nAs in [`{first}`](#{anchor}): {names}.\n")
        });
        if !own.is_empty() {
            self.text.push_str("\n| setting | |\n|---|---|\n");
            self.text.extend(own.iter().map(|(_, row)| row.as_str()));
        }
        self.text.push_str(&link.unwrap_or_default());
        let rows = rows.into_iter().map(|(_, row)| row).collect();
        self.sections.push((title.to_owned(), rows));
    }

    /// `None` if no section has enough of these rows.
    fn nearest(
        &self,
        title: &str,
        rows: &[(String, String)],
    ) -> Option<&(String, HashSet<String>)> {
        let root = |title: &str| {
            title
                .trim_matches(['[', ']'])
                .split('.')
                .next()
                .map(str::to_owned)
        };
        let common =
            |known: &HashSet<String>| rows.iter().filter(|(_, row)| known.contains(row)).count();
        let best = self
            .sections
            .iter()
            .rev()
            .max_by_key(|(_, known)| common(known))?;
        let fewest = match root(&best.0) == root(title) {
            true => FEWEST_SHARED_NEAR,
            false => FEWEST_SHARED,
        };
        (common(&best.1) >= fewest).then_some(best)
    }
}

/// Leaves out deprecated settings, and tables, which have their own sections.
fn rows(schema: &Value) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let settings: Vec<_> = members(schema)
        .filter(|(_, member)| !has_section(member) && member["deprecated"] != true)
        .collect();
    for (at, (name, member)) in settings.iter().enumerate() {
        if is_per_principal(member) && at > 0 {
            continue;
        }
        let mut cell = cell(name, member, is_required(schema, name));
        if let Some((name, member)) = settings
            .get(at + 1)
            .filter(|(_, next)| is_per_principal(next))
        {
            let _ = write!(cell, "<br>{}", self::cell(name, member, false));
        }
        let text = text_of(member).replace('|', "\\|");
        rows.push((
            (*name).to_owned(),
            format!("| {cell} | {text}{} |\n", meanings(member)),
        ));
    }
    rows
}

fn is_per_principal(schema: &Value) -> bool {
    text_of(schema).starts_with(PER_PRINCIPAL)
}

fn anchor(title: &str) -> String {
    let kept = title
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    kept.collect::<String>().to_lowercase()
}

/// Includes optional tables.
fn has_section(schema: &Value) -> bool {
    let kind = &schema["type"];
    let is_object = kind == "object" || *kind == serde_json::json!(["object", "null"]);
    is_object && schema.get("properties").is_some()
}

/// The operator names the tables.
fn holds_sections(schema: &Value) -> bool {
    schema.get("additionalProperties").is_some_and(has_section)
}

fn is_required(schema: &Value, name: &str) -> bool {
    let names = schema["required"].as_array();
    names.is_some_and(|names| names.iter().any(|required| required == name))
}

fn cell(name: &str, schema: &Value, required: bool) -> String {
    let default = match default_of(schema) {
        Some(default) => format!("<br>`{default}`"),
        None if required => "<br>*required*".to_owned(),
        None => String::new(),
    };
    format!("`{name}`{default}")
}

/// Whether a choice's meaning repeats the choice.
fn says_only(meaning: &str, choice: &str) -> bool {
    meaning
        .trim_end_matches('.')
        .eq_ignore_ascii_case(choice.trim_matches('"'))
}

fn meanings(schema: &Value) -> String {
    let named: Vec<String> = variants(schema)
        .into_iter()
        .filter_map(|variant| {
            let choice = choices(variant).into_iter().next()?;
            let meaning = text_of(variant);
            match says_only(&meaning, &choice) {
                true => Some(format!("`{choice}`")),
                false => Some(format!("`{choice}`: {meaning}")),
            }
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
