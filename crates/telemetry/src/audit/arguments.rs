use shoal_ports::matches_pattern;
use shoal_protocol::{RawJson, Token, Tokens, utf16_of};

use super::Audit;

const REDACTED: &[u8] = br#""[redacted]""#;

pub(super) struct AuditedArguments {
    tools: Vec<String>,
    /// In lower case.
    redacted: Vec<String>,
    longest: usize,
}

impl AuditedArguments {
    pub(super) fn new(audit: &Audit) -> Self {
        Self {
            tools: audit.arguments.clone(),
            redacted: audit
                .redact
                .iter()
                .map(|word| word.to_lowercase())
                .collect(),
            longest: audit.argument_bytes,
        }
    }

    pub(super) fn of(&self, tool: &str, params: &RawJson) -> Option<String> {
        if !(self.tools.iter()).any(|pattern| matches_pattern(pattern, tool)) {
            return None;
        }
        let arguments = params.member("arguments")?;
        let mut text = String::from_utf8(self.redacted(arguments.as_bytes())).ok()?;
        if text.len() > self.longest {
            let end = (0..=self.longest)
                .rev()
                .find(|at| text.is_char_boundary(*at));
            text.truncate(end.unwrap_or_default());
            text.push('…');
        }
        Some(text)
    }

    /// Removes white space and secrets.
    fn redacted(&self, text: &[u8]) -> Vec<u8> {
        let mut left = Vec::with_capacity(text.len());
        let mut tokens = Tokens::of(text);
        while let Some(token) = tokens.next() {
            let ends = matches!(token, Token::ObjectEnds | Token::ArrayEnds);
            if !ends && !matches!(left.last(), None | Some(b'{' | b'[' | b':')) {
                left.push(b',');
            }
            match token {
                Token::ObjectBegins => left.push(b'{'),
                Token::ObjectEnds => left.push(b'}'),
                Token::ArrayBegins => left.push(b'['),
                Token::ArrayEnds => left.push(b']'),
                Token::String(written) | Token::Number(written) | Token::Literal(written) => {
                    left.extend_from_slice(written);
                }
                Token::Name(name) => {
                    left.extend_from_slice(name);
                    left.push(b':');
                    if self.is_secret(name) {
                        left.extend_from_slice(REDACTED);
                        pass_value(&mut tokens);
                    }
                }
            }
        }
        left
    }

    fn is_secret(&self, name: &[u8]) -> bool {
        let name = String::from_utf16_lossy(&utf16_of(name)).to_lowercase();
        self.redacted.iter().any(|word| name.contains(word))
    }
}

fn pass_value(tokens: &mut Tokens<'_>) {
    let mut depth = 0_usize;
    for token in tokens {
        match token {
            Token::ObjectBegins | Token::ArrayBegins => depth += 1,
            Token::ObjectEnds | Token::ArrayEnds => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_protocol::RawJson;

    use super::super::Audit;
    use super::AuditedArguments;

    fn of(audit: Audit, tool: &str, params: &'static str) -> Option<String> {
        AuditedArguments::new(&audit).of(tool, &RawJson::from_static(params))
    }

    #[test]
    fn only_those_of_named_tools_are_recorded_without_what_is_secret() {
        let params = r#"{"name":"read","arguments":{"path":"a\nb","Api_Key":"1","in":[{"PASSWORD":{"a":1},"n":2}]}}"#;
        assert_eq!(of(Audit::default(), "read", params), None);
        let audit = Audit {
            arguments: vec!["re*".to_owned()],
            ..Audit::default()
        };
        assert_eq!(of(audit.clone(), "write", params), None);
        let said = of(audit, "read", params).unwrap();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let left = serde_json::json!({"path":"a\nb","Api_Key":"[redacted]","in":[{"PASSWORD":"[redacted]","n":2}]});
        assert_eq!(said, left);
    }

    #[test]
    fn what_is_recorded_is_what_the_tool_gets() {
        let audit = Audit {
            arguments: vec!["*".to_owned()],
            ..Audit::default()
        };
        let text = concat!(
            r#"{"n":[9007199254740993,18446744073709551617,1e400,-0,1.0,0.10000000000000000000001],"#,
            r#""s":["\ud800","\u0061\u2028"],"in":[{},[],{"a":[[1]],"b":null},true]}"#
        );
        let params = format!(r#"{{"arguments":{text}}}"#);
        let params = RawJson::parse_text(params.into()).unwrap();
        let said = AuditedArguments::new(&audit).of("a", &params);
        assert_eq!(said.as_deref(), Some(text));
        let spelt = r#"{"arguments": { "\u0070assword" : {"a":[1,{"b":2}]} , "n" : [ 1 , 2 ] } }"#;
        assert_eq!(
            of(audit, "a", spelt).as_deref(),
            Some(r#"{"\u0070assword":"[redacted]","n":[1,2]}"#)
        );
    }

    #[test]
    fn long_ones_are_cut_between_characters() {
        let audit = Audit {
            arguments: vec!["*".to_owned()],
            argument_bytes: 10,
            ..Audit::default()
        };
        let said = of(audit, "a", r#"{"arguments":{"a":"ääääääää"}}"#).unwrap();
        assert_eq!(said, r#"{"a":"ää…"#);
    }
}
