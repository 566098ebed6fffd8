//! `shoal config`: looks at the configuration without starting anything.

mod hash_token;

use std::path::Path;

use anyhow::Context as _;
use serde_json::json;

use crate::certificates::{self, Certificates};
use crate::cli::{ConfigCommand, ConfigFile, Output};
use crate::config::{self, Environment, Loaded, Preset, Settings, reference};
use crate::exit::Failure;
use crate::print::{json, print};

/// Runs `shoal config …` in a program with these settings. `accept` says whether the program can run what `check` reads.
///
/// # Errors
/// A configuration that cannot be used; a standard stream that cannot be read or written.
pub fn run(
    command: &ConfigCommand,
    program: &[Preset],
    accept: &dyn Fn(&Settings) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let text = match command {
        ConfigCommand::Check(file) => {
            let loaded = load(file, program)?;
            accept(&loaded.settings)?;
            check(&loaded, file.output)?
        }
        ConfigCommand::Show(file) => show(&load(file, program)?, file.output)?,
        ConfigCommand::Doc => reference::markdown(),
        ConfigCommand::Schema => json(&reference::schema())?,
        ConfigCommand::HashToken => hash_token::run()?,
    };
    Ok(print(&text)?)
}

fn load(file: &ConfigFile, program: &[Preset]) -> Result<Loaded, Failure> {
    let file = file.config.as_deref().map(Path::new);
    Ok(config::load(
        program,
        file,
        &Environment::of_process(),
        &[],
    )?)
}

fn check(loaded: &Loaded, output: Output) -> Result<String, Failure> {
    let mut warnings = config::warnings(&loaded.settings);
    let missing = certificates::missing(&loaded.settings);
    if missing.is_empty() {
        Certificates::open(&loaded.settings).map_err(Failure::usage)?;
    }
    warnings.extend(missing);
    let pools: Vec<&str> = loaded.settings.pools.keys().map(String::as_str).collect();
    if output == Output::Json {
        let found = json!({ "sources": loaded.sources, "pools": pools, "warnings": warnings });
        return Ok(json(&found)?);
    }
    let mut text = "the configuration can be used\n".to_owned();
    for source in &loaded.sources {
        text.push_str(&format!("  read: {source}\n"));
    }
    if pools.is_empty() {
        text.push_str("  no pool is configured: give one with --demo or a command after --\n");
    } else {
        text.push_str(&format!("  pools: {}\n", pools.join(", ")));
    }
    for warning in warnings {
        text.push_str(&format!("  warning: {warning}\n"));
    }
    Ok(text)
}

fn show(loaded: &Loaded, output: Output) -> Result<String, Failure> {
    let settings = &loaded.settings;
    Ok(match output {
        Output::Json => json(settings)?,
        Output::Text => {
            toml::to_string_pretty(settings).context("cannot write the settings as TOML")?
        }
    })
}
