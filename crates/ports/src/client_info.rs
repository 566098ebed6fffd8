use std::sync::{Arc, OnceLock};

use shoal_protocol::RawJson;

use crate::shown;

const LONGEST_NAME: usize = 96;

/// A client's `Implementation`. Clones share the parsed form.
#[derive(Clone, Debug)]
pub struct ClientInfo(Arc<ClientInfoInner>);

#[derive(Debug)]
struct ClientInfoInner {
    json: RawJson,
    name: OnceLock<Box<str>>,
}

impl ClientInfo {
    /// Wraps an `Implementation`.
    pub fn new(json: RawJson) -> Self {
        Self(Arc::new(ClientInfoInner {
            json,
            name: OnceLock::new(),
        }))
    }

    /// Returns the client's JSON.
    pub fn as_json(&self) -> &RawJson {
        &self.0.json
    }

    /// Returns name and version, shortened.
    pub fn name(&self) -> &str {
        self.0.name.get_or_init(|| name_of(&self.0.json).into())
    }
}

impl PartialEq for ClientInfo {
    fn eq(&self, other: &Self) -> bool {
        self.0.json == other.0.json
    }
}

fn name_of(info: &RawJson) -> String {
    let [name, version] = info.member_texts(["name", "version"]);
    let name = name.unwrap_or_default();
    match version {
        Some(version) => shown([&*name, &*version].join(" ").trim_ascii(), LONGEST_NAME),
        None => shown(name.trim_ascii(), LONGEST_NAME),
    }
}

#[cfg(test)]
mod tests {
    use shoal_protocol::RawJson;

    use super::ClientInfo;

    #[test]
    fn a_name_is_what_operators_can_read() {
        for (json, name) in [
            (r#"{"name":"a","version":"1.2"}"#, "a 1.2"),
            (r#"{"name":" a\u001b "}"#, "a"),
            (r#"{"version":"1"}"#, "1"),
            ("{}", ""),
            (r#"{"name":1}"#, ""),
        ] {
            let info = ClientInfo::new(RawJson::from_static(json));
            assert_eq!((info.name(), info.clone().name()), (name, name), "{json}");
            assert_eq!(info.as_json().as_str(), json);
        }
    }
}
