//! Texts that somebody else chose, where they are shown or quoted.

/// A text that somebody else chose, as operators and error messages show it: without control characters, and with at most
/// `longest` characters, the last of which is `…` when some were left out.
pub fn shown(text: &str, longest: usize) -> String {
    // As most are: nothing is to be taken out.
    if text.len() <= longest && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    // Those of the second kind turn the direction of what follows.
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let mut left = text.chars().filter(|c| !hidden(*c));
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
    }
}
