/// Whether `name` matches `pattern`, such as `read_*`, where `*` stands for any characters.
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    if pattern == name {
        return true;
    }
    let Some((head, mut rest)) = pattern.split_once('*') else {
        return false;
    };
    let Some(mut left) = name.strip_prefix(head) else {
        return false;
    };
    // The first match leaves the most for later literals.
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
