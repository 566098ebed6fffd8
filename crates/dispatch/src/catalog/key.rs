use shoal_protocol::{RawJson, RawObject};

use super::conflict::ItemKind;

/// The limit of 2025-11-25 and later (Tools, Tool Names).
const NAME_CHARACTERS: usize = 128;
/// Maximum bytes of a URI or a template.
const URI_BYTES: usize = 8 * 1024;
/// Maximum left-out or changed items in the status, and maximum members that it names of one item.
const TOLD: usize = 64;
const SHOWN: usize = 64;

#[derive(Debug)]
pub(super) struct Unfit {
    shown: String,
    reason: &'static str,
}

/// Shoal refuses only characters that a terminal or a log would interpret, and lengths at which
/// some clients refuse the whole list.
pub(super) fn of(kind: ItemKind, item: &RawJson) -> Result<String, Unfit> {
    let member = match kind {
        ItemKind::Tool | ItemKind::Prompt => "name",
        ItemKind::Resource => "uri",
        ItemKind::ResourceTemplate => "uriTemplate",
    };
    let key = RawObject::of(item).and_then(|item| item.get(member)?.string());
    let key = key.ok_or(Unfit {
        shown: "?".to_owned(),
        reason: "it has no name",
    })?;
    let is_long = match kind {
        ItemKind::Tool | ItemKind::Prompt => key.chars().count() > NAME_CHARACTERS,
        ItemKind::Resource | ItemKind::ResourceTemplate => key.len() > URI_BYTES,
    };
    let reason = if key.is_empty() {
        "its name is empty"
    } else if is_long {
        "its name is too long"
    } else if key.chars().any(is_obeyed) {
        "its name has control characters"
    } else {
        return Ok(key);
    };
    let shown = key.chars().take(SHOWN).flat_map(char::escape_debug);
    Err(Unfit {
        shown: shown.collect(),
        reason,
    })
}

fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Unfit {
    pub(super) fn tell(
        self,
        pool: &str,
        kind: ItemKind,
        is_news: bool,
        left_out: &mut Vec<(String, String)>,
    ) {
        let Self { shown, reason } = self;
        if is_news {
            tracing::warn!(pool, %kind, name = shown, reason, "an item was left out of the lists");
        }
        if left_out.len() < TOLD {
            left_out.push((shown, format!("this {kind} is left out: {reason}")));
        }
    }
}

pub(super) fn tell_lost(
    pool: &str,
    kind: ItemKind,
    name: &str,
    lost: &[String],
    is_news: bool,
    told: &mut Vec<(String, String)>,
) {
    let lost = lost
        .iter()
        .take(TOLD)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if is_news {
        tracing::warn!(pool, %kind, name, lost, "an item is listed without members that clients could not read");
    }
    if told.len() < TOLD {
        let reason = format!("this {kind} is listed without what is malformed: {lost}");
        told.push((name.to_owned(), reason));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shoal_protocol::RawJson;

    use super::super::conflict::ItemKind;
    use super::of;

    #[test]
    fn what_a_terminal_would_obey_is_no_name() {
        let tool = |name: &str| of(ItemKind::Tool, &RawJson::of(&json!({ "name": name })));
        for name in ["a", "admin.tools/list", "größe", &"x".repeat(128)] {
            assert_eq!(tool(name).unwrap(), name);
        }
        for name in [
            "",
            "\u{7}",
            "a\nb",
            "\u{1b}[2J",
            "\u{202e}cod",
            &"x".repeat(129),
        ] {
            let unfit = tool(name).unwrap_err();
            assert!(!unfit.shown.chars().any(char::is_control), "{unfit:?}");
        }
        let uri = |uri: &str| of(ItemKind::Resource, &RawJson::of(&json!({ "uri": uri })));
        assert!(uri(&"x".repeat(8192)).is_ok() && uri("a:\0").is_err());
        assert!(of(ItemKind::Prompt, &RawJson::of(&json!(5))).is_err());
    }
}
