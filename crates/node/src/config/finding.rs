//! What is wrong with a configuration, or worth a warning: which setting, where it was set, and what to do.

use std::fmt;

use serde::Serialize;

use super::document::Position;
use super::layers::{Layers, Source};
use super::setting_path::SettingPath;

/// Something that is wrong with a setting, or worth a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The setting, dotted; empty where the text itself cannot be read.
    pub setting: String,
    /// Who set it.
    pub origin: Source,
    /// Where in the file.
    pub position: Option<Position>,
    /// What is wrong, and what to do.
    pub problem: String,
    /// What the setting is.
    pub help: Option<String>,
}

/// A finding for programs.
#[derive(Serialize)]
struct Report<'a> {
    setting: &'a str,
    source: String,
    #[serde(flatten)]
    position: Option<Position>,
    message: &'a str,
}

impl Finding {
    /// Of a setting by its name, with the place where it was set.
    pub(super) fn of_setting(setting: String, problem: String, layers: &Layers) -> Self {
        let path = SettingPath::parse(&setting);
        let origin = layers.source_of(&path.keys());
        let place = layers.place_of(&path, &origin);
        Self {
            setting,
            origin,
            position: place.map(|place| place.key),
            problem,
            help: None,
        }
    }

    /// As one line begins: where the setting was set.
    fn place(&self) -> Option<String> {
        match (&self.origin, self.position) {
            (Source::Default, _) => None,
            (Source::File(path), Some(Position { line, column })) => {
                Some(format!("{}:{line}:{column}", path.display()))
            }
            (Source::File(path), None) => Some(path.display().to_string()),
            (origin, _) => Some(origin.to_string()),
        }
    }

    /// In the order in which somebody reads: the file from its beginning, then the other sources.
    pub(super) fn order(&self) -> (bool, Option<Position>, String, String) {
        let elsewhere = !matches!(self.origin, Source::File(_));
        let origin = self.origin.to_string();
        (elsewhere, self.position, origin, self.setting.clone())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place() {
            write!(f, "{place}: ")?;
        }
        if !self.setting.is_empty() {
            write!(f, "{}: ", self.setting)?;
        }
        f.write_str(&self.problem)
    }
}

impl Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let report = Report {
            setting: &self.setting,
            source: self.origin.to_string(),
            position: self.position,
            message: &self.problem,
        };
        report.serialize(serializer)
    }
}
