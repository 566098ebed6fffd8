//! Names as operators write several at once: `read_*`.

/// Whether `name` is `pattern`, in which `*` stands for any characters, and anything else for itself.
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    // Most are names without a star. Of the others too, each matches itself.
    if pattern == name {
        return true;
    }
    let Some((head, mut rest)) = pattern.split_once('*') else {
        return false;
    };
    let Some(mut left) = name.strip_prefix(head) else {
        return false;
    };
    // Each literal between two stars is taken at its first place, which leaves the most for those that follow.
    while let Some((literal, next)) = rest.split_once('*') {
        let Some(at) = left.find(literal) else {
            return false;
        };
        left = &left[at + literal.len()..];
        rest = next;
    }
    left.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::matches_pattern;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name) in [
            ("echo", "echo"),
            ("*", ""),
            ("*", "anything"),
            ("a*", "abc"),
            ("*c", "abc"),
            ("a*c", "ac"),
            ("a*b*c", "a-b-b-c"),
            ("**", "x"),
        ] {
            assert!(matches_pattern(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("echo", "echo2"),
            ("a*", "ba"),
            ("*c", "cd"),
            ("ab*ba", "aba"),
            ("a*b*c", "a-c"),
        ] {
            assert!(!matches_pattern(pattern, name), "{pattern} {name}");
        }
    }
}
