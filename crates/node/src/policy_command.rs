//! `shoal policy`: evaluates the rules without starting a node.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Value, json};
use shoal_policy::{Cases, Outcome, Policy, PolicyConfig, RulesInForce};

use crate::cli::{PolicyCommand, PolicyTest};
use crate::config::{self, Environment, Preset};
use crate::exit::Failure;
use crate::print::{Output, json, print};

/// Runs `shoal policy …` with the program's settings.
///
/// # Errors
/// When rules or cases are invalid, or a case fails.
pub fn run(command: &PolicyCommand, program: &[Preset]) -> Result<(), Failure> {
    let PolicyCommand::Test(command) = command;
    let cases = read(&command.cases)?;
    let policy = match cases.rules.is_empty() {
        true => in_force(command, program)?,
        false => Arc::new(Policy::compile(&cases.rules).map_err(usage)?),
    };
    let outcomes: Result<Vec<Outcome>, String> = (cases.cases.iter().enumerate())
        .map(|(at, case)| case.run(&policy, at + 1))
        .collect();
    let outcomes = outcomes.map_err(Failure::usage)?;
    let failed = outcomes.iter().filter(|outcome| !outcome.passed).count();
    print(&match command.output {
        Output::Text => outcomes.iter().map(line).collect::<String>(),
        Output::Json => json(&json!({ "cases": outcomes.iter().map(object).collect::<Vec<_>>() }))?,
    })?;
    match failed {
        0 => Ok(()),
        _ => {
            let message = format!("{failed} of {} cases failed", outcomes.len());
            Err(Failure::shown(message))
        }
    }
}

fn read(path: &Path) -> Result<Cases, Failure> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read {}", path.display()))
        .map_err(|error| Failure::usage(format!("{error:#}")))?;
    let cases: Cases = toml::from_str(&text).map_err(|error| {
        let error = error.to_string();
        Failure::usage(format!("{}: {}", path.display(), error.trim_end()))
    })?;
    if cases.cases.is_empty() {
        return Err(Failure::usage(format!(
            "{} has no [[cases]]",
            path.display()
        )));
    }
    Ok(cases)
}

fn in_force(command: &PolicyTest, program: &[Preset]) -> Result<Arc<Policy>, Failure> {
    let config = match &command.rules {
        Some(file) => PolicyConfig {
            file: Some(file.clone()),
            ..PolicyConfig::default()
        },
        None => {
            let environment = Environment::of_process();
            let loaded = config::load(program, command.config.as_deref(), &environment, &[])?;
            loaded.settings.policy
        }
    };
    let rules = RulesInForce::open(&config).map_err(usage)?;
    match rules.map(|rules| rules.current()) {
        Some(policy) => Ok(policy),
        None => Err(Failure::usage(
            "there are no rules to test: put [[rules]] into the file with the cases, or name them with --rules or --config",
        )),
    }
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::usage(error.to_string())
}

fn line(outcome: &Outcome) -> String {
    let passed = if outcome.passed { "ok  " } else { "FAIL" };
    let said = outcome.decision.as_str();
    let rule = match &outcome.rule {
        Some(rule) => format!("by {rule}"),
        None => "by no rule".to_owned(),
    };
    let failed = match outcome.failed {
        true => "; a condition could not be evaluated",
        false => "",
    };
    format!("{passed} {}: {said} {rule}{failed}\n", outcome.name)
}

fn object(outcome: &Outcome) -> Value {
    json!({
        "name": outcome.name,
        "passed": outcome.passed,
        "decision": outcome.decision.as_str(),
        "rule": outcome.rule,
        "failed": outcome.failed,
    })
}
