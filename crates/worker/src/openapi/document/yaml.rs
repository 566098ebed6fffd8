use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Options};

/// Maximum nodes made by aliases, besides one for every four bytes of text. A node takes about 100 bytes.
const REPEATED: usize = 1_000_000;
/// Maximum bytes of text made by aliases, besides the document's own.
const REPEATED_BYTES: usize = 64 * 1024 * 1024;
const DEPTH: usize = 128;

pub(super) fn read(text: &[u8]) -> Result<Value, String> {
    let text = decoded(text)?;
    let text = text.trim_start_matches('\u{feff}');
    if !text.trim_start().starts_with('{') {
        return yaml(text).map_err(|error| format!("it is no YAML: {error}"));
    }
    // A text that begins with a brace may also be YAML.
    serde_json::from_str(text)
        .or_else(|error| yaml(text).map_err(|_| format!("it is no JSON: {error}")))
}

fn decoded(text: &[u8]) -> Result<String, String> {
    let wide = |order: fn([u8; 2]) -> u16| {
        let units = text.chunks_exact(2).map(|pair| order([pair[0], pair[1]]));
        String::from_utf16(&units.collect::<Vec<_>>()).map_err(|_| "it is not UTF-16".to_owned())
    };
    match text {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        _ => match std::str::from_utf8(text) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err("it is not UTF-8".to_owned()),
        },
    }
}

fn yaml(text: &str) -> Result<Value, Error> {
    match serde_saphyr::from_str_with_options(text, options(text, DuplicateKeyPolicy::Error)) {
        Err(error) if is_duplicate(&error) => {
            let last = options(text, DuplicateKeyPolicy::LastWins);
            let read = serde_saphyr::from_str_with_options(text, last)?;
            tracing::warn!(target: "shoal::openapi", %error, "the document has a key twice; the last one counts");
            Ok(read)
        }
        read => read,
    }
}

fn is_duplicate(error: &Error) -> bool {
    matches!(error.without_snippet(), Error::DuplicateMappingKey { .. })
}

fn options(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Options {
    let repeated = REPEATED.saturating_add(text.len() / 4);
    let nodes = text.len().saturating_add(repeated);
    serde_saphyr::options! {
        duplicate_keys: duplicate_keys,
        // `no` and `on` stay strings, as in JSON.
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        // Infinity and NaN become null, because JSON cannot express them.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: repeated,
        },
        budget: serde_saphyr::budget! {
            max_depth: DEPTH,
            max_nodes: nodes,
            max_events: nodes.saturating_mul(2),
            max_aliases: usize::MAX,
            max_anchors: usize::MAX,
            max_merge_keys: usize::MAX,
            max_recorded_anchor_events: nodes,
            max_recorded_anchor_bytes: text.len().saturating_add(REPEATED_BYTES),
            max_total_scalar_bytes: text.len().saturating_add(REPEATED_BYTES),
            enforce_alias_anchor_ratio: false,
        },
    }
}
