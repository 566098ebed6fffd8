//! The nesting limit that keeps a bracket bomb away from every recursive parser behind it.

use memchr::memchr2;

/// Up to so long, a text's brackets are counted first.
const SHORT: usize = 1024;

/// Whether objects and arrays in `text` nest at most `limit` levels deep.
///
/// One pass, no allocation; `text` need not be valid JSON (brackets inside strings do not count).
pub fn nesting_within(text: &[u8], limit: usize) -> bool {
    // A text too short to hold that many opening brackets cannot exceed the limit, nor one that does not hold them. Many short
    // ones are told apart by counting, which is cheaper than to look for the strings.
    let opens = || text.iter().filter(|&&byte| byte | 0x20 == b'{').count();
    if text.len() <= limit || text.len() <= SHORT && opens() <= limit {
        return true;
    }
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => at = end_of_string(text, at),
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return false;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    true
}

/// Index of the closing quote of the string that opens at `start` (or the end of the text).
pub(crate) fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    // By the vector unit: most of a large message is in its strings, and this runs once for each reading of a member.
    while let Some(next) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += next;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{end_of_string, nesting_within};

    #[test]
    fn a_string_ends_at_its_first_quote_that_is_not_escaped() {
        for (text, end) in [
            (r#""""#, 1),
            (r#""ab", "c""#, 3),
            (r#""a\"b"c"#, 5),
            (r#""\\""#, 3),
            (r#""\\\"" "#, 5),
            (r#""open"#, 5),
            (r#""open\"#, 6),
        ] {
            assert_eq!(end_of_string(text.as_bytes(), 0), end, "{text}");
        }
    }

    #[test]
    fn counts_only_open_brackets_outside_strings() {
        assert!(nesting_within(br#"{"a":"[[[[[[[[[[","b":[1]}"#, 2));
        assert!(!nesting_within(br#"{"a":[[1]],"padding":0}"#, 2));
        assert!(nesting_within(br#"[[1],[2],[3],[4],[5]]"#, 2));
    }

    #[test]
    fn an_escaped_quote_does_not_end_a_string() {
        assert!(nesting_within(br#"{"a":"\"[[[[[["}        "#, 1));
    }
}
