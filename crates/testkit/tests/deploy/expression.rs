const OR_ZERO: &str = " or on() vector(0)";

pub(crate) fn without_zero(expr: &str) -> &str {
    expr.strip_suffix(OR_ZERO).unwrap_or(expr)
}

pub(crate) type Matcher = (String, Vec<String>);

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// A name that is a pattern counts as all its alternatives.
    pub(crate) metrics: Vec<(String, Vec<Matcher>)>,
    pub(crate) groups: Vec<String>,
}

pub(crate) fn asked(expr: &str) -> Asked {
    let mut asked = Asked::default();
    let mut before = "";
    let mut rest = expr;
    while let Some(start) = rest.find(|it: char| it.is_alphanumeric() || "_{[\"".contains(it)) {
        rest = &rest[start..];
        match rest.as_bytes()[0] {
            b'{' => {
                let of = &mut asked.metrics.last_mut().unwrap().1;
                of.extend(matchers(until(&mut rest, '}')));
            }
            b'[' => drop(until(&mut rest, ']')),
            b'"' => {
                rest = &rest[1..];
                until(&mut rest, '"');
            }
            _ => {
                let is_part = |it: char| it.is_alphanumeric() || "_:.".contains(it);
                let end = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                rest = after;
                if is_followed_by_labels(word) {
                    let labels = until(&mut rest, ')').trim_start_matches([' ', '(']);
                    let labels = labels.split(',').map(str::trim);
                    let labels = labels.filter(|label| !label.is_empty());
                    asked.groups.extend(labels.map(str::to_owned));
                } else if is_metric(word, before, rest) {
                    asked.metrics.push((word.to_owned(), Vec::new()));
                }
                before = word;
            }
        }
    }
    asked
}

fn until<'a>(rest: &mut &'a str, end: char) -> &'a str {
    let (taken, after) = rest.split_once(end).unwrap();
    *rest = after;
    taken
}

/// Parses `{a="x",b=~"y|z"}` without the closing brace. Values contain no commas.
fn matchers(text: &str) -> impl Iterator<Item = Matcher> {
    text.trim_start_matches('{').split(',').map(|matcher| {
        let (label, value) = matcher.split_once(['=', '!']).unwrap();
        let value = value.trim_start_matches(['=', '~']).trim_matches('"');
        let values = value.split('|').map(str::to_owned);
        (label.to_owned(), values.collect())
    })
}

fn is_followed_by_labels(word: &str) -> bool {
    ["by", "without", "on", "ignoring"].contains(&word)
}

/// Whether a word is a metric: not a number, a duration, an operator, a function, or an aggregation (whose labels may
/// come first).
fn is_metric(word: &str, before: &str, rest: &str) -> bool {
    let is_operator = ["and", "or", "unless", "offset"].contains(&word);
    let next = rest.trim_start();
    let is_function = ["(", "by ", "without "]
        .iter()
        .any(|it| next.starts_with(it));
    let is_number = word.starts_with(|it: char| it.is_ascii_digit());
    !is_operator && !is_function && !is_number && before != "offset"
}

#[test]
fn metrics_and_labels_are_told_from_everything_else() {
    let expr = "histogram_quantile(0.95, sum by (le, p) (rate(a_seconds_bucket{x=~\"b|c_total\",y!=\"\"}[$__rate_interval])))\
        or sum without (q) (d_total offset 10m) > 14.4 * 0.001 and on(x) e:f:rate5m unless max(g) or on() vector(0)";
    let labels = |all: &[(&str, &[&str])]| {
        let owned = |it: &&str| (*it).to_owned();
        let one =
            |(label, values): &(&str, &[&str])| (owned(label), values.iter().map(owned).collect());
        all.iter().map(one).collect()
    };
    let asked = asked(expr);
    let expected: [(&str, Vec<Matcher>); 4] = [
        (
            "a_seconds_bucket",
            labels(&[("x", &["b", "c_total"]), ("y", &[""])]),
        ),
        ("d_total", labels(&[])),
        ("e:f:rate5m", labels(&[])),
        ("g", labels(&[])),
    ];
    let expected = expected.map(|(name, labels)| (name.to_owned(), labels));
    assert_eq!(asked.metrics, expected);
    assert_eq!(asked.groups, ["le", "p", "q", "x"]);
    assert!(without_zero(expr).ends_with("max(g)"));
}
