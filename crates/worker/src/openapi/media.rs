//! The kinds of content that media types name.

/// The declaration order is the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyKind {
    Json,
    Multipart,
    Form,
    Text,
    /// Clients send the bytes as Base64.
    Bytes,
}

impl BodyKind {
    pub(super) fn of(media: &str) -> Self {
        let bare = essence(media);
        match bare.as_str() {
            "application/json" | "application/*" | "*/*" => Self::Json,
            "application/x-www-form-urlencoded" => Self::Form,
            "multipart/form-data" => Self::Multipart,
            "application/xml"
            | "application/yaml"
            | "application/x-yaml"
            | "application/graphql"
            | "application/jsonl"
            | "application/x-ndjson" => Self::Text,
            other if other.ends_with("+json") => Self::Json,
            other if other.starts_with("text/") || other.ends_with("+xml") => Self::Text,
            _ => Self::Bytes,
        }
    }
}

pub(super) fn essence(media: &str) -> String {
    let bare = media.split(';').next().unwrap_or_default();
    bare.trim().to_ascii_lowercase()
}
