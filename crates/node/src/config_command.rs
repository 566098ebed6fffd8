//! `shoal config`: looks at the configuration without starting anything.

use std::io::{self, Read as _};
use std::path::Path;

use anyhow::Context as _;

use crate::cli::{ConfigCommand, ConfigFile};
use crate::config::{self, Environment, Loaded, TokenHash, reference};
use crate::exit::Failure;
use crate::print::print;

/// Runs `shoal config …`.
///
/// # Errors
/// A configuration that cannot be used; a standard stream that cannot be read or written.
pub fn run(command: &ConfigCommand) -> Result<(), Failure> {
    let text = match command {
        ConfigCommand::Check(file) => check(&load(file)?),
        ConfigCommand::Show(file) => show(&load(file)?)?,
        ConfigCommand::Doc => reference::markdown(),
        ConfigCommand::Schema => schema()?,
        ConfigCommand::HashToken => hash_token()?,
    };
    Ok(print(&text)?)
}

fn load(file: &ConfigFile) -> Result<Loaded, Failure> {
    let file = file.config.as_deref().map(Path::new);
    Ok(config::load(file, &Environment::of_process(), &[])?)
}

fn check(loaded: &Loaded) -> String {
    let mut text = "the configuration can be used\n".to_owned();
    for source in &loaded.sources {
        text.push_str(&format!("  read: {source}\n"));
    }
    let pools: Vec<&str> = loaded.settings.pools.keys().map(String::as_str).collect();
    if pools.is_empty() {
        text.push_str("  no pool is configured: give one with --demo or a command after --\n");
    } else {
        text.push_str(&format!("  pools: {}\n", pools.join(", ")));
    }
    for warning in config::warnings(&loaded.settings) {
        text.push_str(&format!("  warning: {warning}\n"));
    }
    text
}

fn show(loaded: &Loaded) -> Result<String, Failure> {
    Ok(toml::to_string_pretty(&loaded.settings).context("cannot write the settings as TOML")?)
}

fn schema() -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(&reference::schema())
        .context("cannot write the schema as JSON")?;
    Ok(text + "\n")
}

fn hash_token() -> Result<String, Failure> {
    let mut token = String::new();
    io::stdin()
        .read_to_string(&mut token)
        .context("cannot read a token from standard input")?;
    let token = token.trim();
    if token.is_empty() {
        return Err(Failure::usage(
            "no token on standard input: try `openssl rand -base64 32 | shoal config hash-token`",
        ));
    }
    Ok(TokenHash::of(token).to_hex() + "\n")
}
