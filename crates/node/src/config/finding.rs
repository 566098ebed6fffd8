use std::fmt;

use serde::Serialize;

use super::document::Position;
use super::layers::{Layers, Source};
use super::setting_path::SettingPath;

/// An error or a warning about a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The dotted setting. Empty if the text itself cannot be read.
    pub setting: String,
    /// The source of the setting.
    pub origin: Source,
    /// The position in the file.
    pub position: Option<Position>,
    /// The problem, and what to do.
    pub problem: String,
    /// The description of the setting.
    pub help: Option<String>,
}

#[derive(Serialize)]
struct FindingReport<'a> {
    setting: &'a str,
    source: String,
    #[serde(flatten)]
    position: Option<Position>,
    message: &'a str,
}

impl Finding {
    pub(super) fn of_setting(path: &SettingPath, problem: String, layers: &Layers) -> Self {
        let origin = layers.source_of(&path.keys());
        let place = layers.place_of(path, &origin);
        Self {
            setting: path.to_string(),
            origin,
            position: place.map(|place| place.key),
            problem,
            help: None,
        }
    }

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

    /// Orders the file from its beginning, then the other sources.
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
        let report = FindingReport {
            setting: &self.setting,
            source: self.origin.to_string(),
            position: self.position,
            message: &self.problem,
        };
        report.serialize(serializer)
    }
}
