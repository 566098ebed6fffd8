//! The nesting limit that keeps a bracket bomb away from every recursive parser behind it.

/// Whether objects and arrays in `text` nest at most `limit` levels deep.
///
/// One pass, no allocation; `text` need not be valid JSON (brackets inside strings do not count).
pub fn nesting_within(text: &[u8], limit: usize) -> bool {
    // A text too short to hold that many opening brackets cannot exceed the limit.
    if text.len() <= limit {
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
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::nesting_within;

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
