use std::collections::BTreeMap;

use serde::Serialize;
use toml::Table;
use toml::de::{DeTable, DeValue};

use super::setting_path::SettingPath;

/// A position in a text, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

pub(super) struct SyntaxError {
    pub(super) position: Position,
    pub(super) reason: String,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SettingPlace {
    pub(super) key: Position,
    pub(super) value: Position,
}

#[derive(Debug, Default)]
pub(super) struct SettingPlaces(BTreeMap<SettingPath, SettingPlace>);

impl SettingPlaces {
    /// Returns the nearest table or list above a missing setting.
    pub(super) fn nearest(&self, path: &SettingPath) -> Option<SettingPlace> {
        let steps = &path.0;
        let ends = (1..=steps.len()).rev();
        ends.map(|end| SettingPath(steps[..end].to_vec()))
            .find_map(|path| self.0.get(&path).copied())
    }
}

/// # Errors
///
/// Returns all TOML errors.
pub(super) fn read(text: &str) -> Result<(Table, SettingPlaces), Vec<SyntaxError>> {
    let lines = TextLines::of(text);
    // The error's own text quotes the line, which may contain a secret.
    let error = |error: &toml::de::Error| SyntaxError {
        position: lines.position(error.span().map_or(0, |span| span.start)),
        reason: in_plain_words(error.message()),
    };
    let (document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors.iter().map(error).collect());
    }
    let table: Table = text.parse().map_err(|wrong| vec![error(&wrong)])?;
    let mut places = SettingPlaces::default();
    note_table(
        &mut places,
        &SettingPath::default(),
        document.get_ref(),
        &lines,
    );
    Ok((table, places))
}

/// The parser calls everything that begins with a digit a number.
fn in_plain_words(reason: &str) -> String {
    if reason.starts_with("invalid type: integer") {
        return "this number is too large".to_owned();
    }
    let is_number = ["invalid float", "invalid integer", "invalid datetime"];
    match is_number.iter().any(|begin| reason.starts_with(begin)) {
        true => "this is no number: put text in quotes".to_owned(),
        false => reason.to_owned(),
    }
}

fn note_table(
    places: &mut SettingPlaces,
    at: &SettingPath,
    table: &DeTable<'_>,
    lines: &TextLines<'_>,
) {
    for (key, value) in table {
        let at = at.key(key.get_ref());
        let place = SettingPlace {
            key: lines.position(key.span().start),
            value: lines.position(value.span().start),
        };
        places.0.insert(at.clone(), place);
        note(places, &at, value.get_ref(), lines);
    }
}

fn note(places: &mut SettingPlaces, at: &SettingPath, value: &DeValue<'_>, lines: &TextLines<'_>) {
    match value {
        DeValue::Table(table) => note_table(places, at, table, lines),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let at = at.index(index);
                let position = lines.position(item.span().start);
                let place = SettingPlace {
                    key: position,
                    value: position,
                };
                places.0.insert(at.clone(), place);
                note(places, &at, item.get_ref(), lines);
            }
        }
        _ => {}
    }
}

struct TextLines<'a> {
    text: &'a str,
    begins: Vec<usize>,
}

impl<'a> TextLines<'a> {
    fn of(text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            begins: std::iter::once(0).chain(ends).collect(),
        }
    }

    fn position(&self, offset: usize) -> Position {
        let line = self.begins.partition_point(|begin| *begin <= offset);
        let begin = self.begins[line.saturating_sub(1)];
        let before = self.text.get(begin..offset).unwrap_or_default();
        Position {
            line,
            column: before.chars().count() + 1,
        }
    }
}
