//! Telling which request an overlong line answers.

/// The id of the request that a response answers, read from how its line begins and ends.
///
/// Only where the spelling leaves no doubt: the envelope's own members right at the start
/// (`{"jsonrpc":"2.0","id":7,"result":`) or right at the end (`,"jsonrpc":"2.0","id":7}`), as the
/// official SDKs write them. Nothing inside a result can look like either, because the first brace
/// opens the message and the last one closes it.
pub(super) fn answered_id(head: &[u8], tail: &[u8]) -> Option<u64> {
    let head = without_spaces(head);
    let tail = without_spaces(tail);
    at_start(&head).or_else(|| {
        let rest = head.strip_prefix(b"{").unwrap_or_default();
        let rest = rest.strip_prefix(VERSION_FIRST).unwrap_or(rest);
        is_outcome(rest).then(|| at_end(&tail))?
    })
}

const VERSION_FIRST: &[u8] = br#""jsonrpc":"2.0","#;
const VERSION_LAST: &[u8] = br#","jsonrpc":"2.0""#;

fn without_spaces(text: &[u8]) -> Vec<u8> {
    let kept = text.iter().filter(|byte| !byte.is_ascii_whitespace());
    kept.copied().collect()
}

fn is_outcome(text: &[u8]) -> bool {
    text.starts_with(br#""result":"#) || text.starts_with(br#""error":"#)
}

fn at_start(head: &[u8]) -> Option<u64> {
    let rest = head.strip_prefix(b"{")?;
    let rest = rest.strip_prefix(VERSION_FIRST).unwrap_or(rest);
    let rest = rest.strip_prefix(br#""id":"#)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (id, rest) = rest.split_at(digits);
    let rest = rest.strip_prefix(b",")?;
    let rest = rest.strip_prefix(VERSION_FIRST).unwrap_or(rest);
    is_outcome(rest).then(|| number(id))?
}

fn at_end(tail: &[u8]) -> Option<u64> {
    let rest = tail.strip_suffix(b"}")?;
    let rest = rest.strip_suffix(VERSION_LAST).unwrap_or(rest);
    let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let (rest, id) = rest.split_at(rest.len() - digits.count());
    rest.ends_with(br#","id":"#).then(|| number(id))?
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::answered_id;

    fn id(line: &str) -> Option<u64> {
        let head = &line[..line.len().min(50)];
        let tail = &line[line.len().saturating_sub(50)..];
        answered_id(head.as_bytes(), tail.as_bytes())
    }

    #[test]
    fn the_envelope_is_read_at_either_end() {
        for line in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":"…"}}"#,
            r#"{"jsonrpc": "2.0", "id": 7, "result": {"content": "…"}}"#,
            r#"{"result":{"content":"long long long long long long long"},"jsonrpc":"2.0","id":7}"#,
            r#"{"error":{"message":"long long long long long long long"},"id":7,"jsonrpc":"2.0"}"#,
            r#"{"id":7,"jsonrpc":"2.0","error":{"code":1}}"#,
        ] {
            assert_eq!(id(line), Some(7), "{line}");
        }
    }

    #[test]
    fn an_id_inside_a_result_or_of_a_request_is_not_taken() {
        for line in [
            r#"{"jsonrpc":"2.0","result":{"x":"long long long long","id":7},"id":"a"}"#,
            r#"{"jsonrpc":"2.0","result":{"x":"long long long long long long","id":7}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"roots/list","params":{"x":"long long"}}"#,
            r#"{"method":"roots/list","params":{"x":"long long long long long"},"id":7}"#,
            r#"{"jsonrpc":"2.0","result":{"x":"long long long long","y":",\"id\":7}"}}"#,
            "garbage",
            "",
        ] {
            assert_eq!(id(line), None, "{line}");
        }
    }
}
