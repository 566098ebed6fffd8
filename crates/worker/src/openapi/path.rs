//! Paths as documents write them: with names of parameters, of several segments too, and with a query of their own.

mod expression;
mod template;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

pub(super) use self::template::PathTemplate;

/// What cannot stand in a path as it is.
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

/// A part of a path, or of a value in its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathPiece {
    Literal(String),
    /// The parameter at this place among the tool's, and how many segments it may be.
    Argument(usize, Segments),
}

/// A name and a value that stand in the query of each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueryPair {
    pub(super) name: String,
    /// `None` where there is no `=`.
    pub(super) value: Option<Vec<PathPiece>>,
}

/// A path, ready to be filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BoundPath {
    pub(super) pieces: Vec<PathPiece>,
    pub(super) query: Vec<QueryPair>,
}

/// How much of a path one value may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segments {
    /// Part of one segment: a slash is encoded.
    One,
    /// Any number of them.
    Several,
    /// As many as this pattern has, as `google.api.http` writes it: `projects/*/locations/**`.
    Like(String),
}

impl Segments {
    /// Whether a slash stays one.
    pub(super) fn are_several(&self) -> bool {
        *self != Self::One
    }

    /// Checks a value that is several segments: none of them leads elsewhere.
    ///
    /// # Errors
    /// What a value must be like.
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
        // It is the last one wherever it stands.
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

/// Text of the document as it stands in a path.
fn literal(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

#[cfg(test)]
mod tests;
