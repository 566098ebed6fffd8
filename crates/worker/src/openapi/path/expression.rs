//! Braces in paths, as in RFC 6570, `google.api.http` and web frameworks.

use super::Segments;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathExpression {
    pub(super) before: &'static str,
    pub(super) name: String,
    pub(super) segments: Segments,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Braces {
    Values(Vec<PathExpression>),
    /// `{?a,b}`
    Query(Vec<String>),
}

/// Parses the text between braces, unless the whole text is a declared parameter's name.
pub(super) fn read(written: &str, is_declared: &dyn Fn(&str) -> bool) -> Braces {
    let whole = |segments| {
        Braces::Values(vec![PathExpression {
            before: "",
            name: written.to_owned(),
            segments,
        }])
    };
    if is_declared(written) {
        return whole(Segments::One);
    }
    let names = |list: &str| {
        let names = list
            .split(',')
            .map(|name| name.trim().trim_end_matches('*'));
        names
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (before, segments, rest) = match written.as_bytes().first() {
        Some(b'?' | b'&') => return Braces::Query(names(&written[1..])),
        Some(b'+' | b'#') => ("", Segments::Several, &written[1..]),
        Some(b'/') => ("/", Segments::One, &written[1..]),
        Some(b'.') => (".", Segments::One, &written[1..]),
        _ => ("", Segments::One, written),
    };
    let mut expressions = Vec::new();
    // A pattern may contain commas.
    let list = match rest.contains(['=', ':']) {
        true => vec![rest],
        false => rest.split(',').collect(),
    };
    for (at, one) in list.into_iter().enumerate() {
        let (name, own) = named(one.trim());
        if name.is_empty() {
            return whole(Segments::One);
        }
        let between = if before.is_empty() { "," } else { before };
        expressions.push(PathExpression {
            before: if at == 0 { before } else { between },
            name: name.to_owned(),
            segments: if own == Segments::One {
                segments.clone()
            } else {
                own
            },
        });
    }
    Braces::Values(expressions)
}

fn named(written: &str) -> (&str, Segments) {
    if let Some((name, pattern)) = written.split_once('=') {
        return match pattern {
            "*" => (name, Segments::One),
            "**" => (name, Segments::Several),
            pattern => (name, Segments::Like(pattern.to_owned())),
        };
    }
    if let Some((name, kind)) = written.split_once(':') {
        // `kind` is a regular expression, or a web framework's converter.
        let several = kind == "path" || kind.contains(".*") || kind.contains(".+");
        let segments = if several {
            Segments::Several
        } else {
            Segments::One
        };
        return (name, segments);
    }
    let name = written.trim_end_matches(['*', '+']);
    let several = name.len() < written.len();
    let segments = if several {
        Segments::Several
    } else {
        Segments::One
    };
    (name, segments)
}
