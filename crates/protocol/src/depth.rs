//! Limits the nesting of JSON text, to protect recursive parsers.

use memchr::memchr2;

/// Maximum bytes of texts whose brackets are counted first.
const SHORT: usize = 1024;

/// Whether `text`, perhaps invalid JSON, nests at most `limit` levels deep. Takes one pass without allocation.
pub fn nesting_within(text: &[u8], limit: usize) -> bool {
    // Counting brackets is cheaper than skipping strings.
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

const STEP: usize = 16;

/// Returns the position of the closing quote of the string at `start`, or the text's end.
pub(crate) fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    // Most strings end within two steps. A search pays only for longer ones.
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

/// A separate function, so that `end_of_string` needs fewer registers.
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
