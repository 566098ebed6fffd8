//! What of a tool's arguments is recorded.

use serde_json::Value;
use shoal_ports::matches_pattern;
use shoal_protocol::RawJson;

use super::Audit;

/// What stands for a value that is left out.
const REDACTED: &str = "[redacted]";

/// Which arguments are recorded, and what of them is not.
pub(super) struct Arguments {
    tools: Vec<String>,
    /// Lower case.
    redacted: Vec<String>,
    longest: usize,
}

impl Arguments {
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

    /// The arguments of a call, as JSON text, where they are recorded.
    pub(super) fn of(&self, tool: &str, params: &RawJson) -> Option<String> {
        if !(self.tools.iter()).any(|pattern| matches_pattern(pattern, tool)) {
            return None;
        }
        let mut arguments: Value = params.member("arguments")?.read().ok()?;
        self.redact(&mut arguments);
        let mut text = arguments.to_string();
        if text.len() > self.longest {
            let end = (0..=self.longest)
                .rev()
                .find(|at| text.is_char_boundary(*at));
            text.truncate(end.unwrap_or_default());
            text.push('…');
        }
        Some(text)
    }

    /// As deep as the limit of a message's nesting.
    fn redact(&self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    let name = name.to_lowercase();
                    if self.redacted.iter().any(|word| name.contains(word)) {
                        *value = REDACTED.into();
                    } else {
                        self.redact(value);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact(item)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_protocol::RawJson;

    use super::super::Audit;
    use super::Arguments;

    fn of(audit: Audit, tool: &str, params: &'static str) -> Option<String> {
        Arguments::new(&audit).of(tool, &RawJson::from_static(params))
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
