//! Matches URIs against templates of RFC 6570, levels 1 to 3.

#[derive(Clone, Debug)]
pub(crate) struct UriTemplate {
    text: String,
    parts: Vec<TemplatePart>,
}

#[derive(Clone, Debug)]
enum TemplatePart {
    Literal(Vec<u8>),
    Expression(TemplateExpression),
    Any,
}

/// `{var}`, `{+var}`, `{#var}`, `{.var}`, `{/var}`, `{;var}`, `{?var}` or `{&var}`.
#[derive(Clone, Copy, Debug)]
struct TemplateExpression {
    /// The first character of the expansion, if the operator adds one. Without it, the expansion must not be empty.
    lead: Option<u8>,
    stops: &'static [u8],
}

impl UriTemplate {
    /// An unclosed brace is literal text.
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            let Some((expression, tail)) = after.split_once('}') else {
                break;
            };
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(literal.into()));
            }
            parts.push(TemplatePart::Expression(TemplateExpression::of(expression)));
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Literal(rest.into()));
        }
        Self {
            text: text.to_owned(),
            parts,
        }
    }

    pub(crate) fn pattern(text: &str) -> Self {
        let mut pattern = Self::parse(text);
        let parts = pattern.parts.into_iter().flat_map(|part| match part {
            TemplatePart::Literal(literal) => at_stars(&literal),
            other => vec![other],
        });
        pattern.parts = parts.collect();
        pattern
    }

    pub(crate) fn says(&self, bytes: &[u8]) -> bool {
        let says = |literal: &[u8]| literal.iter().any(|byte| bytes.contains(byte));
        (self.parts.iter())
            .any(|part| matches!(part, TemplatePart::Literal(literal) if says(literal)))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The set of reachable positions advances without backtracking, so steps are at most the
    /// product of both lengths.
    pub(crate) fn matches(&self, uri: &str) -> bool {
        let uri = uri.as_bytes();
        let mut reached = vec![false; uri.len() + 1];
        reached[0] = true;
        for part in &self.parts {
            reached = match part {
                TemplatePart::Literal(literal) => after_literal(literal, uri, &reached),
                TemplatePart::Expression(expression) => expression.after(uri, &reached),
                TemplatePart::Any => after_any(reached),
            };
        }
        reached[uri.len()]
    }
}

fn at_stars(literal: &[u8]) -> Vec<TemplatePart> {
    let mut parts = Vec::new();
    for (at, text) in literal.split(|&byte| byte == b'*').enumerate() {
        if at > 0 {
            parts.push(TemplatePart::Any);
        }
        if !text.is_empty() {
            parts.push(TemplatePart::Literal(text.into()));
        }
    }
    parts
}

fn after_any(mut reached: Vec<bool>) -> Vec<bool> {
    if let Some(first) = reached.iter().position(|&is_reached| is_reached) {
        reached[first..].fill(true);
    }
    reached
}

fn after_literal(literal: &[u8], uri: &[u8], reached: &[bool]) -> Vec<bool> {
    let mut next = vec![false; reached.len()];
    for at in (0..reached.len()).filter(|&at| reached[at]) {
        if uri[at..].starts_with(literal) {
            next[at + literal.len()] = true;
        }
    }
    next
}

impl TemplateExpression {
    fn of(expression: &str) -> Self {
        let (lead, stops): (_, &[u8]) = match expression.as_bytes().first() {
            Some(b'+') => (None, b""),
            Some(b'#') => (Some(b'#'), b""),
            Some(b'.') => (Some(b'.'), b"/?#"),
            Some(b'/') => (Some(b'/'), b"?#"),
            Some(b';') => (Some(b';'), b"/?#"),
            Some(b'?') => (Some(b'?'), b"#"),
            Some(b'&') => (Some(b'&'), b"#"),
            _ => (None, b"/?#"),
        };
        Self { lead, stops }
    }

    fn after(self, uri: &[u8], reached: &[bool]) -> Vec<bool> {
        let takes = |at: usize| uri.get(at).is_some_and(|byte| !self.stops.contains(byte));
        let mut inside = vec![false; reached.len()];
        for at in (0..uri.len()).filter(|&at| reached[at]) {
            inside[at + 1] |= match self.lead {
                Some(lead) => uri[at] == lead,
                None => takes(at),
            };
        }
        for at in 0..uri.len() {
            if inside[at] && takes(at) {
                inside[at + 1] = true;
            }
        }
        if self.lead.is_some() {
            for (inside, reached) in inside.iter_mut().zip(reached) {
                *inside |= reached;
            }
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::UriTemplate;

    #[test]
    fn matches_what_a_template_expands_to() {
        for (template, uri, expected) in [
            ("test://t/{id}/data", "test://t/42/data", true),
            ("test://t/{id}/data", "test://t//data", false),
            ("test://t/{id}/data", "test://t/4/2/data", false),
            ("file:///{+path}", "file:///a/b/c.txt", true),
            ("db://{table}{?limit,offset}", "db://users?limit=3", true),
            ("db://{table}{?limit}", "db://users", true),
            ("db://{table}{/row}", "db://users/7", true),
            ("db://{table}{/row}", "dc://users/7", false),
            ("x://{a}-{b}", "x://1-2-3", true),
            ("x://{a}{.ext}{#part}", "x://f.md#top", true),
            ("x://open{brace", "x://open{brace", true),
            ("plain", "plain", true),
            ("plain", "plainer", false),
        ] {
            assert_eq!(
                UriTemplate::parse(template).matches(uri),
                expected,
                "{template} {uri}"
            );
        }
    }

    #[test]
    fn a_star_of_a_pattern_stands_for_any_characters() {
        for (pattern, uri, expected) in [
            ("*", "", true),
            ("a://*/{id}", "a://b/c/d", true),
            ("a://*/{id}", "a://b/c/", false),
            ("a:*b*", "a:b", true),
            ("a:*b*", "a:c", false),
        ] {
            assert_eq!(
                UriTemplate::pattern(pattern).matches(uri),
                expected,
                "{pattern} {uri}"
            );
        }
        assert!(!UriTemplate::parse("a*").matches("ab"));
    }

    #[test]
    fn a_hostile_uri_costs_no_more_than_its_length() {
        let template = UriTemplate::parse(&format!("x://{}", "{+a}b".repeat(50)));
        assert!(!template.matches(&format!("x://{}c", "ab".repeat(5_000))));
    }
}
