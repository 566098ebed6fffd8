use super::expression::{Braces, PathExpression, read};
use super::{BoundPath, PathPiece, QueryPair, Segments, literal};
use crate::openapi::document::{Parameter, ParameterLocation};
use crate::openapi::inputs::{Inputs, Unsupported};

#[derive(Debug)]
pub(in crate::openapi) struct PathTemplate {
    parts: Vec<Part>,
    query: Vec<(String, Option<Vec<Part>>)>,
    in_query: Vec<String>,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Name(PathExpression),
}

impl PathTemplate {
    /// Text after `#` only distinguishes operations, so it is dropped.
    pub(in crate::openapi) fn parse(
        written: &str,
        declared: &[Parameter],
    ) -> Result<Self, Unsupported> {
        let is_declared = |name: &str| declared.iter().any(|it| it.name == name);
        let written = written.split('#').next().unwrap_or_default();
        let slash = if written.starts_with('/') { "" } else { "/" };
        let before_names = written.split('{').next().unwrap_or_default();
        if before_names.contains("://") || before_names.starts_with("//") {
            let wrong = "its path must begin with one /, since the service is said elsewhere";
            return Err(Unsupported::Wrong(wrong.to_owned()));
        }
        let (path, query) = split(written);
        let mut in_query = Vec::new();
        let mut parts = parts(&format!("{slash}{path}"), &is_declared, &mut in_query);
        for part in &mut parts {
            if let Part::Name(expression) = part
                && expression.segments == Segments::One
                && declared
                    .iter()
                    .any(|it| it.takes_segments(&expression.name))
            {
                expression.segments = Segments::Several;
            }
        }
        let pairs = query.into_iter().flat_map(|query| query.split('&'));
        let pairs = pairs.filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = match pair.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (pair, None),
            };
            let value = value.map(|value| self::parts(value, &is_declared, &mut in_query));
            (name.to_owned(), value)
        });
        let query = pairs.collect();
        let mut template = Self {
            parts,
            query,
            in_query,
        };
        template.give_way(declared);
        Ok(template)
    }

    /// Drops pairs like `?q={q}`, which only repeat that `q` is a query parameter.
    fn give_way(&mut self, declared: &[Parameter]) {
        let is_in_path = |name: &str| {
            declared
                .iter()
                .any(|it| it.name == name && it.location == ParameterLocation::Path)
        };
        let (own, others) =
            std::mem::take(&mut self.query)
                .into_iter()
                .partition(|(name, value)| {
                    let only = match value.as_deref() {
                        Some([Part::Name(one)]) => Some(&one.name),
                        _ => None,
                    };
                    only == Some(name) && !is_in_path(name)
                });
        let own: Vec<(String, Option<Vec<Part>>)> = own;
        self.query = others;
        self.in_query.extend(own.into_iter().map(|(name, _)| name));
    }

    pub(in crate::openapi) fn names(&self) -> impl Iterator<Item = &str> {
        names(&self.parts)
    }

    pub(in crate::openapi) fn query_names(&self) -> impl Iterator<Item = &str> {
        let values = self.query.iter().filter_map(|(_, value)| value.as_deref());
        values.flat_map(names)
    }

    pub(in crate::openapi) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.in_query.iter().map(String::as_str)
    }

    pub(in crate::openapi) fn fixes(&self, name: &str) -> bool {
        self.query.iter().any(|(fixed, _)| fixed == name)
    }

    pub(in crate::openapi) fn bind(&self, inputs: &Inputs) -> BoundPath {
        let pieces = |parts: &[Part], place: ParameterLocation| {
            let mut pieces = Vec::new();
            for part in parts {
                match part {
                    Part::Text(text) => pieces.push(PathPiece::Literal(literal(text))),
                    Part::Name(one) => {
                        if !one.before.is_empty() {
                            pieces.push(PathPiece::Literal(one.before.to_owned()));
                        }
                        let mut parameters = inputs.parameters.iter();
                        let at = parameters
                            .position(|it| it.location == place && it.writer.name == one.name);
                        let at = at.expect("each name in the path has a parameter");
                        pieces.push(PathPiece::Argument(at, one.segments.clone()));
                    }
                }
            }
            pieces
        };
        let query = self.query.iter().map(|(name, value)| QueryPair {
            name: literal(name),
            value: (value.as_ref()).map(|value| pieces(value, ParameterLocation::Bound)),
        });
        BoundPath {
            query: query.collect(),
            pieces: pieces(&self.parts, ParameterLocation::Path),
        }
    }
}

fn names(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| match part {
        Part::Name(one) => Some(one.name.as_str()),
        Part::Text(_) => None,
    })
}

/// A `?` between braces does not start the query.
fn split(written: &str) -> (&str, Option<&str>) {
    let mut depth = 0_usize;
    for (at, c) in written.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '?' if depth == 0 => return (&written[..at], Some(&written[at + 1..])),
            _ => {}
        }
    }
    (written, None)
}

fn parts(
    written: &str,
    is_declared: &dyn Fn(&str) -> bool,
    in_query: &mut Vec<String>,
) -> Vec<Part> {
    let (mut parts, mut rest) = (Vec::new(), written);
    while let Some((text, after)) = rest.split_once('{') {
        let Some((inner, after)) = closed(after) else {
            break;
        };
        if !text.is_empty() {
            parts.push(Part::Text(text.to_owned()));
        }
        match read(inner, is_declared) {
            Braces::Values(values) => parts.extend(values.into_iter().map(Part::Name)),
            Braces::Query(names) => in_query.extend(names),
        }
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.to_owned()));
    }
    parts
}

/// A regular expression may contain nested braces.
fn closed(written: &str) -> Option<(&str, &str)> {
    let mut depth = 1_usize;
    for (at, c) in written.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&written[..at], &written[at + 1..]));
        }
    }
    None
}
