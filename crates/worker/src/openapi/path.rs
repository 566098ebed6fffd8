//! Paths with names of parameters in them.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::document::ParameterLocation;
use super::inputs::{Inputs, Unsupported};

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
/// A part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathPiece {
    Literal(String),
    /// The parameter at this place among the tool's.
    Argument(usize),
}

/// A path with names of parameters in it.
pub(super) struct PathTemplate<'a>(Vec<PathPart<'a>>);

enum PathPart<'a> {
    Text(&'a str),
    Name(&'a str),
}

impl<'a> PathTemplate<'a> {
    /// Reads a path.
    pub(super) fn parse(path: &'a str) -> Result<Self, Unsupported> {
        if !path.starts_with('/') || path.contains('?') {
            let wrong = "its path must begin with / and have no query";
            return Err(Unsupported::Wrong(wrong.to_owned()));
        }
        let (mut parts, mut rest) = (Vec::new(), path);
        while let Some((text, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                break;
            };
            parts.extend([PathPart::Text(text), PathPart::Name(name)]);
            rest = after;
        }
        parts.push(PathPart::Text(rest));
        Ok(Self(parts))
    }

    /// The names in it.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter_map(|part| match part {
            PathPart::Name(name) => Some(*name),
            PathPart::Text(_) => None,
        })
    }

    /// The path of a tool, which has a parameter for each name.
    pub(super) fn bind(&self, inputs: &Inputs) -> Vec<PathPiece> {
        let at = |name: &str| {
            let mut parameters = inputs.parameters.iter();
            let found = parameters
                .position(|it| it.location == ParameterLocation::Path && it.writer.name == name);
            found.expect("each name in the path has a parameter")
        };
        let pieces = self.0.iter().map(|part| match part {
            PathPart::Text(text) => PathPiece::Literal(utf8_percent_encode(text, PATH).to_string()),
            PathPart::Name(name) => PathPiece::Argument(at(name)),
        });
        pieces.collect()
    }
}
