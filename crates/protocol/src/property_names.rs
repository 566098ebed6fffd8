//! Replaces property names that model APIs refuse.

use sha2::{Digest as _, Sha256};

/// Maximum length of a name in Claude's API, which requires `^[a-zA-Z0-9_.-]{1,64}$`.
const LONGEST: usize = 64;
const DIGEST: usize = 8;
const NAMELESS: &str = "property";
const WORDS: [(&str, &str); 4] = [("<=", "lte"), (">=", "gte"), ("<", "lt"), (">", "gt")];

/// Whether every client accepts the property name.
pub fn is_legal_name(name: &str) -> bool {
    let fits = |c: u8| c.is_ascii_alphanumeric() || b"_.-".contains(&c);
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(fits)
}

/// Returns a property's legal name, without regard to other properties.
pub fn legal_name(name: &str) -> String {
    if is_legal_name(name) {
        return name.to_owned();
    }
    // After `=`, a pattern for the value follows: `{name=projects/*}`.
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
        _ if is_opaque_name(name) => format!("{NAMELESS}_{}", name_digest(whole)),
        "" => NAMELESS.to_owned(),
        trimmed => shortened_name(trimmed, whole),
    }
}

/// Shortens a name and appends a digest of `whole`.
///
/// # Panics
/// A long name is not ASCII.
pub fn shortened_name(name: &str, whole: &str) -> String {
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    assert!(name.is_ascii(), "{name:?} is not ASCII");
    format!("{}_{}", &name[..LONGEST - DIGEST - 1], name_digest(whole))
}

/// Whether the name has letters that a legal name cannot contain.
pub fn is_opaque_name(name: &str) -> bool {
    name.chars().any(|c| !c.is_ascii() && c.is_alphanumeric())
}

/// Returns the name, with a number if taken.
///
/// # Panics
/// The name leaves no room for a number and is not ASCII.
pub fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
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

/// Whether the legal name `listed` may stand for the illegal name `own`.
pub fn may_be_listed_as(own: &str, listed: &str) -> bool {
    if is_legal_name(own) {
        return false;
    }
    let legal = legal_name(own);
    let rest = listed.strip_prefix(&*legal);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// Returns a short digest, stable across releases.
pub fn name_digest(name: &str) -> String {
    let digest = Sha256::digest(name);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    digest[..DIGEST].to_owned()
}

fn separate(plain: &mut String) {
    if !plain.is_empty() && !plain.ends_with('_') {
        plain.push('_');
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, legal_name, may_be_listed_as, shortened_name};

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
            assert_eq!(legal_name(written), listed, "{written}");
        }
        let long = "x".repeat(100) + "y";
        let (one, other) = (legal_name(&long), legal_name(&"x".repeat(100)));
        assert!(one.len() == LONGEST && other.len() == LONGEST && one != other);
        assert_eq!(shortened_name(&long, &long), one);
        assert_eq!(shortened_name("short", &long), "short");
        let (one, other) = (legal_name("名前"), legal_name("年齢"));
        assert!(
            one.starts_with("property_") && one != other,
            "{one} {other}"
        );
    }

    #[test]
    fn a_refused_name_may_be_listed_under_some_names_only() {
        for (own, listed, may) in [
            ("$top", "top", true),
            ("$top", "top_2", true),
            ("$top", "top_in_header", true),
            ("$top", "topmost", false),
            ("top", "top", false),
            ("sessionId", "session", false),
        ] {
            assert_eq!(may_be_listed_as(own, listed), may, "{own} {listed}");
        }
    }
}
