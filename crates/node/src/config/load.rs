use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use serde_json::Value as Schema;
use shoal_ports::{read_text, read_text_or_pipe};
use toml::Value;

use super::deviations::{self, Deviation, Problem};
use super::document::{self, SyntaxError};
use super::dropped::Dropped;
use super::error::{Error, Findings};
use super::finding::Finding;
use super::layers::{Layers, Source};
use super::parse::{Unreadable, parse};
use super::setting_path::SettingPath;
use super::variable::variable_name;
use super::{
    Environment, Flag, Given, LONGEST_FILE, Loaded, Preset, Settings, files, reference, rules,
    warnings,
};

/// Maximum reported values that cannot be read. Each costs another attempt to read the settings.
const MOST_UNREADABLE: usize = 100;
/// Maximum known settings in a message about an unknown one.
const MOST_KNOWN: usize = 16;

/// Reads and checks the settings. All other sources override `program`, and `file` replaces the file that the
/// environment names.
///
/// # Errors
///
/// All errors, with their sources and the allowed values.
pub fn load(
    program: &[Preset],
    file: Option<&Path>,
    environment: &Environment,
    flags: &[Flag],
) -> Result<Loaded, Error> {
    load_by(read_text_or_pipe, program, file, environment, flags)
}

/// Reads and checks the settings again. The file must be regular, so that reading does not block.
///
/// # Errors
///
/// As for [`load`].
pub(crate) fn load_again(
    program: &[Preset],
    file: Option<&Path>,
    environment: &Environment,
    flags: &[Flag],
) -> Result<Loaded, Error> {
    load_by(read_text, program, file, environment, flags)
}

fn load_by(
    read_text: fn(&Path, u64) -> io::Result<String>,
    program: &[Preset],
    file: Option<&Path>,
    environment: &Environment,
    flags: &[Flag],
) -> Result<Loaded, Error> {
    let mut layers = Layers::default();
    for (path, value) in program {
        layers.set(path, value.clone(), &Source::Program);
    }
    for variable in &environment.standard {
        let source = Source::Variable(variable.name.clone());
        layers.set(&variable.path, variable.value.clone(), &source);
    }
    let file = file.or(environment.config_file.as_deref());
    if let Some(path) = file {
        let text = read_text(path, LONGEST_FILE).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        let (table, places) = document::read(&text).map_err(|errors| no_toml(path, errors))?;
        layers.apply_file(table, places, path);
    }
    for variable in &environment.variables {
        let source = Source::Variable(variable.name.clone());
        layers.set(&variable.path, variable.value.clone(), &source);
    }
    for flag in flags {
        let source = Source::Flag(flag.flag.to_owned());
        layers.set(&flag.path, flag.value.clone(), &source);
    }
    let settings = examine(&layers)?;
    let mut warnings = warnings::of(&settings, &layers);
    warnings.extend(environment.without_effect());
    Ok(Loaded {
        absent: files::absent(&settings, &layers),
        settings,
        sources: layers.sources(),
        from_file: file.is_some(),
        given: Given(layers.merged().clone()),
        discovered: BTreeSet::new(),
        left_out: Vec::new(),
        warnings,
    })
}

fn no_toml(path: &Path, errors: Vec<SyntaxError>) -> Error {
    let findings = errors.into_iter().map(|error| Finding {
        setting: String::new(),
        origin: Source::File(path.to_owned()),
        position: Some(error.position),
        problem: format!("this is not TOML: {}", error.reason),
        help: None,
    });
    Error::Unusable(Findings::new(findings.collect()))
}

fn examine(layers: &Layers) -> Result<Settings, Error> {
    let schema = reference::inlined();
    let (settings, deviations) = understand(&schema, layers);
    let misread: BTreeSet<&str> = deviations.iter().filter_map(|it| it.path.table()).collect();
    let broken = settings
        .as_ref()
        .map(|settings| rules::check(settings, &misread));
    let broken = broken
        .into_iter()
        .flatten()
        .filter(|broken| !(deviations.iter()).any(|it| broken.may_follow_from(&it.path)))
        .map(|broken| broken.finding(layers))
        .collect::<Vec<_>>();
    let misfits = deviations
        .into_iter()
        .map(|deviation| finding(deviation, layers));
    let findings: Vec<Finding> = misfits.chain(broken).collect();
    match settings {
        Some(settings) if findings.is_empty() => Ok(settings),
        _ => Err(Error::Unusable(Findings::new(findings))),
    }
}

pub(super) fn understand(schema: &Schema, layers: &Layers) -> (Option<Settings>, Vec<Deviation>) {
    let mut found = deviations::of(schema, layers.merged());
    let mut tree = Value::Table(layers.merged().clone());
    let mut dropped = Dropped::default();
    for deviation in &found {
        dropped.drop(&mut tree, &deviations::droppable(schema, &deviation.path));
    }
    // Deserializing finds errors that the schema cannot express, one in each attempt.
    for _ in 0..MOST_UNREADABLE {
        let Unreadable { path, reason } = match parse(&tree) {
            Ok(settings) => return (Some(settings), found),
            Err(error) => error,
        };
        let path = dropped.before(&path);
        let problem = unreadable(layers, &path, &reason);
        let drop = deviations::droppable(schema, &path);
        // If a wrong item was removed from this list, the list's error may only follow from that.
        if !dropped.took_from(&path) {
            found.push(Deviation {
                path,
                problem: Problem::Misfit(problem),
            });
        }
        if !dropped.drop(&mut tree, &drop) {
            break;
        }
    }
    (None, found)
}

/// `reason` is the message of the value's type: `…, expected …`.
fn unreadable(layers: &Layers, path: &SettingPath, reason: &str) -> String {
    let value = layers.value_at(path);
    let shown = value.map(|value| deviations::shown(value, path));
    let shown = shown.unwrap_or_else(|| "the value".to_owned());
    match reason.rfind("expected ") {
        // The error of `SocketAddr` does not say what was expected.
        None if reason == "invalid socket address syntax" => {
            format!("{shown} is not an address and a port, such as 127.0.0.1:8080")
        }
        None if reason.starts_with(&shown) => reason.to_owned(),
        Some(at) => format!("{shown} is not {}", &reason[at + "expected ".len()..]),
        None if super::holds_secrets(&path.keys()) => format!("{shown} cannot be used"),
        None => format!("{shown} cannot be used: {reason}"),
    }
}

pub(super) fn finding(deviation: Deviation, layers: &Layers) -> Finding {
    let Deviation { path, problem } = deviation;
    let keys = path.keys();
    let origin = layers.source_of(&keys);
    let place = layers.place_of(&path, &origin);
    let help = match &problem {
        Problem::Unknown { .. } => None,
        Problem::Missing | Problem::Misfit(_) => reference::help(&keys),
    };
    let position = place.map(|place| match &problem {
        Problem::Unknown { .. } | Problem::Missing => place.key,
        Problem::Misfit(_) => place.value,
    });
    let problem = match problem {
        Problem::Missing => "it is not set, and has no default".to_owned(),
        Problem::Misfit(reason) => reason,
        Problem::Unknown { meant, known } => unknown(&origin, &meant, &known),
    };
    Finding {
        setting: path.to_string(),
        origin,
        position,
        problem,
        help,
    }
}

fn unknown(origin: &Source, meant: &[Vec<String>], known: &[String]) -> String {
    let as_set = |keys: &Vec<String>| match origin {
        Source::Variable(_) => {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            variable_name(&keys)
        }
        _ => SettingPath::of_keys(keys).to_string(),
    };
    let hint = if !meant.is_empty() {
        let meant: Vec<String> = meant.iter().map(as_set).collect();
        format!("; did you mean {}?", meant.join(" or "))
    } else if (1..=MOST_KNOWN).contains(&known.len()) {
        format!("; here there are {}", known.join(", "))
    } else {
        "; `shoal config doc` prints all settings".to_owned()
    };
    format!("there is no such setting{hint}")
}
