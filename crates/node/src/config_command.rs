//! `shoal config`: checks and prints the configuration.

mod hash_token;

use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use shoal_auth::StaticTokens;
use shoal_policy::RulesInForce;

use crate::certificates::{self, Certificates};
use crate::cli::{ConfigCommand, ConfigFile};
use crate::config::files::{is_there, of_redis};
use crate::config::{
    self, AuthMode, Environment, Finding, Loaded, Preset, Role, Settings, Source, reference,
};
use crate::exit::Failure;
use crate::print::{Output, json, print};

/// Runs `shoal config …`. `accept` rejects settings that the program cannot run.
///
/// # Errors
/// If the configuration is invalid, or a standard stream cannot be read or written.
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
    open_files(&loaded.settings)?;
    let mut warnings: Vec<&Finding> = loaded.warnings.iter().chain(&loaded.absent).collect();
    let no_pool = no_pool(loaded);
    warnings.extend(&no_pool);
    let pools: Vec<&str> = loaded.settings.pools.keys().map(String::as_str).collect();
    if output == Output::Json {
        let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        let found = json!({ "sources": loaded.sources, "pools": pools, "warnings": warnings });
        return Ok(json(&found)?);
    }
    let mut text = match warnings.len() {
        0 => "the configuration can be used\n".to_owned(),
        1 => "the configuration can be used, with 1 warning\n".to_owned(),
        several => format!("the configuration can be used, with {several} warnings\n"),
    };
    for source in &loaded.sources {
        text.push_str(&format!("  read: {source}\n"));
    }
    if !pools.is_empty() {
        text.push_str(&format!("  pools: {}\n", pools.join(", ")));
    }
    for warning in warnings {
        text.push_str(&format!("  warning: {warning}\n"));
    }
    Ok(text)
}

/// Opens files as a start would, if they exist on this machine.
fn open_files(settings: &Settings) -> Result<(), Failure> {
    if certificates::are_there(settings) {
        Certificates::open(settings).map_err(Failure::usage)?;
    }
    let redis = of_redis(settings);
    if !redis.is_empty() && redis.iter().all(|(_, file)| file.exists()) {
        shoal_store_redis::open_files(&settings.redis_store())
            .map_err(|reason| Failure::usage(format!("redis: {reason}")))?;
    }
    let auth = &settings.auth;
    let edge = settings.node.is(Role::Edge);
    if edge && auth.mode == AuthMode::Tokens && is_there(auth.tokens_file.as_deref()) {
        // Opening starts a watch, which needs a runtime.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.context("cannot start the runtime")?;
        let opened = runtime.block_on(async { StaticTokens::start(auth).map(drop) });
        opened.map_err(|reason| Failure::usage(format!("auth.tokens_file: {reason}")))?;
    }
    if is_there(settings.policy.file.as_deref()) {
        let opened = RulesInForce::open(&settings.policy).map(drop);
        opened.map_err(|error| Failure::usage(format!("policy.file: {error}")))?;
    }
    Ok(())
}

/// Without a file, `shoal serve` serves the demo tools.
fn no_pool(loaded: &Loaded) -> Option<Finding> {
    let settings = &loaded.settings;
    let is_none = loaded.from_file && settings.pools.is_empty() && settings.node.is(Role::Worker);
    is_none.then(|| Finding {
        setting: "pools".to_owned(),
        origin: Source::Default,
        position: None,
        problem: "there is none, so `shoal serve` does not start without --demo, a URL or a command after --: add \
                  [pools.<name>] with a backend"
            .to_owned(),
        help: None,
    })
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
