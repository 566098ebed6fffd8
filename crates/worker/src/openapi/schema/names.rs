//! Names of properties that every client takes, and the way back to the service's own.

use std::collections::HashSet;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The keyword that holds the service's own name of a property that is listed under another.
pub(in crate::openapi) const WIRE_NAME: &str = "x-shoal-name";

/// Characters of a property's name (Claude's API: `^[a-zA-Z0-9_.-]{1,64}$`).
const LONGEST: usize = 64;
/// Characters of a digest that tells names apart.
const DIGEST: usize = 8;
/// What a name becomes of which nothing is left.
const NAMELESS: &str = "property";

/// The names under which properties of one object are listed. A name that is legal is kept.
pub(in crate::openapi) fn aliases(names: &[&str]) -> Vec<String> {
    let mut taken: HashSet<String> = names
        .iter()
        .filter(|name| is_legal(name))
        .map(|name| (*name).to_owned())
        .collect();
    let alias = |name: &&str| match is_legal(name) {
        true => (*name).to_owned(),
        false => {
            let alias = free(&legal(name), |name| taken.contains(name));
            taken.insert(alias.clone());
            alias
        }
    };
    names.iter().map(alias).collect()
}

/// A name with which this one can be listed, whatever others there are.
pub(in crate::openapi) fn legal(name: &str) -> String {
    if is_legal(name) {
        return name.to_owned();
    }
    // What follows is a pattern for the value: `{name=projects/*}`.
    let (name, whole) = match name.split_once('=') {
        Some((before, after)) if !before.is_empty() && !after.is_empty() => (before, name),
        _ => (name, name),
    };
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let word = WORDS.iter().find(|(sign, _)| rest.starts_with(sign));
        match (c, word) {
            (_, Some((sign, word))) => {
                separate(&mut plain);
                plain.push_str(word);
                rest = &rest[sign.len()..];
                if !rest.is_empty() {
                    plain.push('_');
                }
                continue;
            }
            (c, _) if c.is_ascii_alphanumeric() || c == '-' || c == '.' => plain.push(c),
            _ => separate(&mut plain),
        }
        rest = &rest[c.len_utf8()..];
    }
    let trimmed = plain.trim_matches(['_', '.', '-']);
    match trimmed {
        _ if is_opaque(name) => format!("{NAMELESS}_{}", digest(whole)),
        "" => NAMELESS.to_owned(),
        trimmed if trimmed.len() > LONGEST => {
            format!("{}_{}", &trimmed[..LONGEST - DIGEST - 1], digest(whole))
        }
        trimmed => trimmed.to_owned(),
    }
}

/// Whether a name has letters that its legal name cannot have, so that only the name itself says what it is.
pub(in crate::openapi) fn is_opaque(name: &str) -> bool {
    name.chars().any(|c| !c.is_ascii() && c.is_alphanumeric())
}

/// Signs that tell names apart, in words.
const WORDS: [(&str, &str); 4] = [("<=", "lte"), (">=", "gte"), ("<", "lt"), (">", "gt")];

/// Whether every client takes it as it is.
fn is_legal(name: &str) -> bool {
    let fits = |c: u8| c.is_ascii_alphanumeric() || b"_.-".contains(&c);
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(fits)
}

/// The name, or one with a number where it is taken.
pub(in crate::openapi) fn free(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(name) {
        return name.to_owned();
    }
    let numbered = (2..).map(|number| {
        let number = format!("_{number}");
        format!(
            "{}{number}",
            &name[..name.len().min(LONGEST - number.len())]
        )
    });
    let mut numbered = numbered.filter(|name| !is_taken(name));
    numbered.next().expect("there are more numbers than names")
}

fn separate(plain: &mut String) {
    if !plain.is_empty() && !plain.ends_with('_') {
        plain.push('_');
    }
}

/// A few characters that are always the same for a name.
pub(in crate::openapi) fn digest(name: &str) -> String {
    let digest = Sha256::digest(name);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    digest[..DIGEST].to_owned()
}

/// The schema as clients see it.
pub(in crate::openapi) fn without_wire_names(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let shown = members.iter().filter(|(name, _)| *name != WIRE_NAME);
            let shown = shown.map(|(name, value)| (name.clone(), without_wire_names(value)));
            Value::Object(shown.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_wire_names).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, aliases, legal};

    #[test]
    fn a_name_is_legal_short_and_readable() {
        for (written, listed) in [
            ("page_size", "page_size"),
            ("X-Request.Id", "X-Request.Id"),
            ("include[]", "include"),
            ("filter[author.name]", "filter_author.name"),
            ("$.xgafv", "xgafv"),
            ("$filter", "filter"),
            ("+name", "name"),
            ("@type", "type"),
            ("StartTime<", "StartTime_lt"),
            ("StartTime>", "StartTime_gt"),
            ("date<=", "date_lte"),
            ("<a", "lt_a"),
            ("name=projects/*", "name"),
            ("a b", "a_b"),
            ("[]", "property"),
        ] {
            assert_eq!(legal(written), listed, "{written}");
        }
        let long = "x".repeat(100) + "y";
        let (one, other) = (legal(&long), legal(&"x".repeat(100)));
        assert!(one.len() == LONGEST && other.len() == LONGEST && one != other);
        let (one, other) = (legal("名前"), legal("年齢"));
        assert!(
            one.starts_with("property_") && one != other,
            "{one} {other}"
        );
    }

    #[test]
    fn a_legal_name_keeps_its_place() {
        let names = ["type", "@type", "include[]", "include", "include[", "$type"];
        let listed = [
            "type",
            "type_2",
            "include_2",
            "include",
            "include_3",
            "type_3",
        ];
        assert_eq!(aliases(&names), listed);
    }
}
