use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};
use shoal_protocol::{RawJson, Token, Tokens, is_unseen, utf16_of};

/// Maximum bytes of arguments in a question.
const LONGEST: usize = 4096;

/// Keeps the spelling of numbers, and escapes invisible characters.
pub(super) fn pretty(arguments: Option<&RawJson>) -> String {
    let Some(arguments) = arguments else {
        return "Without arguments.".to_owned();
    };
    let text = indented(arguments);
    if text.len() <= LONGEST {
        return format!("Arguments:\n{text}");
    }
    let mut end = LONGEST;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (left_out, digest) = (text.len() - end, Sha256::digest(arguments.as_bytes()));
    let digest = digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let text = &text[..end];
    format!(
        "Arguments (cut: {left_out} more bytes are not shown; SHA-256 of all {digest}):\n{text}…"
    )
}

pub(super) fn name(given: &str, longest: usize) -> String {
    let mut text = String::new();
    given.chars().for_each(|letter| push(letter, &mut text));
    shoal_protocol::shown(&text, longest)
}

fn indented(json: &RawJson) -> String {
    let mut text = String::new();
    let mut depth = 0;
    let mut before = None;
    for token in Tokens::of(json.as_bytes()) {
        let ends = matches!(token, Token::ObjectEnds | Token::ArrayEnds);
        let opened = matches!(before, Some(Token::ObjectBegins | Token::ArrayBegins));
        depth -= usize::from(ends && depth > 0);
        match before {
            None | Some(Token::Name(_)) => {}
            Some(_) if opened && ends => {}
            Some(_) => line(!opened && !ends, depth, &mut text),
        }
        match token {
            Token::ObjectBegins => text.push('{'),
            Token::ArrayBegins => text.push('['),
            Token::ObjectEnds => text.push('}'),
            Token::ArrayEnds => text.push(']'),
            Token::Name(name) => {
                string(name, &mut text);
                text.push_str(": ");
            }
            Token::String(value) => string(value, &mut text),
            Token::Number(written) | Token::Literal(written) => {
                text.push_str(std::str::from_utf8(written).unwrap_or_default());
            }
        }
        depth += usize::from(matches!(token, Token::ObjectBegins | Token::ArrayBegins));
        before = Some(token);
    }
    text
}

fn line(comma: bool, depth: usize, text: &mut String) {
    if comma {
        text.push(',');
    }
    if text.len() <= LONGEST {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth));
    }
}

fn string(written: &[u8], text: &mut String) {
    text.push('"');
    for read in char::decode_utf16(utf16_of(written)) {
        match read {
            Ok(letter @ ('"' | '\\')) => text.extend(['\\', letter]),
            Ok('\n') => text.push_str("\\n"),
            Ok('\t') => text.push_str("\\t"),
            Ok(letter) => push(letter, text),
            Err(half) => escape(half.unpaired_surrogate(), text),
        }
    }
    text.push('"');
}

fn push(letter: char, text: &mut String) {
    if !is_unseen(letter) {
        text.push(letter);
        return;
    }
    let mut units = [0; 2];
    for unit in letter.encode_utf16(&mut units) {
        escape(*unit, text);
    }
}

fn escape(unit: u16, text: &mut String) {
    let _ = write!(text, "\\u{unit:04x}");
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shoal_protocol::RawJson;

    use super::{LONGEST, name, pretty};

    fn of(text: &str) -> String {
        pretty(Some(&RawJson::parse_text(text.to_owned().into()).unwrap()))
    }

    #[test]
    fn arguments_are_shown_in_their_order() {
        let shown = of(r#"{"z":{"list":[1,-2.5,null,{}],"none":[ ]},"a":"x\"y"}"#);
        assert_eq!(
            shown,
            "Arguments:\n{\n  \"z\": {\n    \"list\": [\n      1,\n      -2.5,\n      null,\n      {}\n    ],\n    \"none\": []\n  },\n  \"a\": \"x\\\"y\"\n}"
        );
        assert_eq!(pretty(None), "Without arguments.");
    }

    #[test]
    fn numbers_are_shown_as_they_are_sent() {
        for number in [
            "9007199254740993",
            "18446744073709551617",
            "123456789012345678901234567890.123456789012345678901234567890",
            "1e400",
            "-0",
            "1.0",
            "1E+2",
            "0.10000000000000000000001",
        ] {
            let shown = of(&format!(r#"{{"amount":{number},"list":[{number}]}}"#));
            assert!(shown.contains(&format!("\"amount\": {number},")), "{shown}");
            assert!(shown.contains(&format!("\n    {number}\n")), "{shown}");
        }
    }

    #[test]
    fn nothing_is_hidden_by_its_spelling() {
        let shown = of(r#"{"\u0070ath":"\u002fetc","b":"a\u202egpj.exe\u0000\r\n\udb40\udc41"}"#);
        assert!(shown.contains(r#""path": "/etc""#), "{shown}");
        assert!(
            shown.contains(r#""a\u202egpj.exe\u0000\u000d\n\udb40\udc41""#),
            "{shown}"
        );
        let shown = of("{\"a\":\"x\u{2800}\u{1d173}\u{1bca0}\u{a0}\u{3000}\u{e000}y\\ud800\"}");
        assert!(
            shown.contains(r#""x\u2800\ud834\udd73\ud82f\udca0\u00a0\u3000\ue000y\ud800""#),
            "{shown}"
        );
        assert_eq!(name("pay\u{200b} all\u{2800}", 20), r"pay\u200b all\u2800");
    }

    #[test]
    fn long_arguments_are_cut_and_it_is_said() {
        let text = json!({ "text": "ä".repeat(LONGEST) }).to_string();
        let shown = of(&text);
        assert!(shown.len() < LONGEST + 200 && shown.ends_with('…'));
        assert!(shown.contains("more bytes are not shown; SHA-256 of all "));
        let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
        let many = format!(
            r#"{{"a":[{}]}}"#,
            std::iter::repeat_n(nested, 100)
                .collect::<Vec<_>>()
                .join(",")
        );
        assert!(of(&many).len() < LONGEST + 200);
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
        assert!(of(&deep).len() < LONGEST + 200);
    }
}
