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

/// So many bytes are looked at in one step.
const STEP: usize = 16;

/// Index of the closing quote of the string that opens at `start` (or the end of the text).
pub(crate) fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    // Most strings are short, and end before a search would have begun. A long one loses little by two steps.
    for _ in 0..2 {
        let Some(step) = text.get(at..at + STEP).and_then(<[u8]>::first_chunk) else {
            break;
        };
        let ends = ends(step);
        if ends != 0 {
            at += (ends.trailing_zeros() / 8) as usize;
            if text.get(at) == Some(&b'"') {
                return at;
            }
            break;
        }
        at += STEP;
    }
    search_end(text, at)
}

/// The same from within the string, for long ones: most of a large message is in its strings, so this goes by the vector
/// unit. It is apart so that short strings do not pay for what it keeps in registers.
#[inline(never)]
fn search_end(text: &[u8], mut at: usize) -> usize {
    while let Some(next) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += next;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}

/// Which of the bytes are a quotation mark or a backslash: their bits are set, and those of the first byte are the lowest.
/// The compiler makes a few vector instructions of it.
fn ends(step: &[u8; STEP]) -> u128 {
    u128::from_le_bytes(step.map(|byte| match byte {
        b'"' | b'\\' => 0xff,
        _ => 0,
    }))
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

    /// The same, byte by byte.
    fn end_by_bytes(text: &[u8], start: usize) -> usize {
        let mut at = start + 1;
        while at < text.len() && text[at] != b'"' {
            at += if text[at] == b'\\' { 2 } else { 1 };
        }
        at.min(text.len())
    }

    #[test]
    fn a_string_ends_at_the_same_place_whatever_its_length_and_what_is_escaped() {
        for length in 0..70 {
            for after in [0, 1, 7, 15, 16, 40] {
                for escape in 0..=length {
                    for escapes in 0..3 {
                        let mut text = vec![b'x'; 1];
                        text.push(b'"');
                        text.resize(2 + length, 0xc3);
                        let escaped = text.iter_mut().skip(2 + escape).take(escapes);
                        escaped.for_each(|byte| *byte = b'\\');
                        text.push(b'"');
                        text.resize(text.len() + after, b'"');
                        assert_eq!(
                            end_of_string(&text, 1),
                            end_by_bytes(&text, 1),
                            "{length} {after} {escape} {escapes}"
                        );
                    }
                }
            }
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
