use crate::is_unseen;

/// Makes untrusted text safe to show: drops [invisible characters](is_unseen), and shortens it to `longest`
/// characters, ending in `…`.
pub fn shown(text: &str, longest: usize) -> String {
    if text.len() <= longest && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    let mut left = text.chars().filter_map(|c| match is_unseen(c) {
        false => Some(c),
        // Invisible white space becomes a space, so that words stay apart.
        true => (c.is_whitespace() && !c.is_control()).then_some(' '),
    });
    let mut kept: String = left.by_ref().take(longest).collect();
    if left.next().is_some() {
        kept.pop();
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn texts_are_bounded_and_hold_nothing_hidden() {
        assert_eq!(shown("plain", 5), "plain");
        assert_eq!(shown("a\u{7f}b", 5), "ab");
        assert_eq!(shown("longer", 5), "long…");
        assert_eq!(shown("a\u{1b}[31m\nb\u{202e}c", 20), "a[31mbc");
        assert_eq!(shown("äöüäöü", 3), "äö…");
        assert_eq!(
            shown("a\u{2800}b\u{1d173}c\u{3000}d\u{2028}e", 20),
            "abc d e"
        );
    }
}
