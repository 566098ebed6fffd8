//! Paths, whose parameters may span several segments, and which may have a query.

mod expression;
mod template;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

pub(super) use self::template::PathTemplate;

const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathPiece {
    Literal(String),
    Argument(usize, Segments),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueryPair {
    pub(super) name: String,
    pub(super) value: Option<Vec<PathPiece>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BoundPath {
    pub(super) pieces: Vec<PathPiece>,
    pub(super) query: Vec<QueryPair>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segments {
    /// Slashes are encoded.
    One,
    Several,
    /// A pattern of `google.api.http`: `projects/*/locations/**`.
    Like(String),
}

impl Segments {
    pub(super) fn are_several(&self) -> bool {
        *self != Self::One
    }

    /// Refuses a value of several segments that leads to another path, such as `..`, or breaks its pattern.
    pub(super) fn check(&self, written: &str) -> Result<(), String> {
        let segments: Vec<&str> = written.split('/').collect();
        let is_last = |at: usize| at > 0 && at + 1 == segments.len();
        let leads_away = segments.iter().enumerate().any(|(at, segment)| {
            matches!(*segment, "." | "..") || segment.is_empty() && !is_last(at)
        });
        match self {
            Self::One => Ok(()),
            _ if leads_away => {
                Err("must not begin with / nor have the segments . and ..".to_owned())
            }
            Self::Several => Ok(()),
            Self::Like(pattern) => {
                let pattern_segments: Vec<&str> = pattern.split('/').collect();
                match is_like(&pattern_segments, &segments) {
                    true => Ok(()),
                    false => Err(format!("must be of the form {pattern}")),
                }
            }
        }
    }
}

fn is_like(pattern: &[&str], segments: &[&str]) -> bool {
    match (pattern.split_first(), segments.split_first()) {
        (None, None) => true,
        (Some((&"**", _)), _) => segments.iter().all(|segment| !segment.is_empty()),
        (Some((&"*", pattern)), Some((segment, segments))) => {
            !segment.is_empty() && is_like(pattern, segments)
        }
        (Some((text, pattern)), Some((segment, segments))) => {
            text == segment && is_like(pattern, segments)
        }
        _ => false,
    }
}

fn literal(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

#[cfg(test)]
mod tests;
