//! The parts of an object that the controller keeps: those that it needs to make a pool.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use serde_json::Value;

use crate::kind::Kind;
use crate::target::LONGEST_URL;

/// The prefix of Shoal's labels and annotations.
const PREFIX: &str = "shoal.dev/";
/// The annotations that say something, without the prefix.
const ANNOTATIONS: [&str; 5] = ["path", "port", "prefix", "token-secret", "transport"];
/// Bytes of a text that are kept: more than a URL or an annotation may have, also where the last character is left out, so that a text
/// that was cut is refused.
const LONGEST_TEXT: usize = LONGEST_URL + 4;
/// Ports of a Service that are kept.
const MOST_PORTS: usize = 100;

/// One object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    pub(crate) api_version: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// When it was made, as RFC 3339, which sorts as time does.
    pub(crate) created: String,
    /// Whether it is being deleted.
    pub(crate) leaving: bool,
    /// The value of the label that makes a Service a server, or excludes another object.
    pub(crate) server: Option<String>,
    /// Shoal's annotations, without the prefix.
    pub(crate) annotations: BTreeMap<&'static str, String>,
    pub(crate) what: What,
}

/// The part of an object that depends on its kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    Service(Service),
    /// The URL in the status of an object of an operator, if there is one yet.
    Published(Option<String>),
}

/// A Service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Service {
    /// Whether its name leads elsewhere.
    pub(crate) external: bool,
    /// Whether it has pods of its namespace behind it. If not, somebody writes the addresses by hand.
    pub(crate) selects: bool,
    pub(crate) ports: Vec<Port>,
}

/// A port of a Service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) number: u64,
    pub(crate) protocol: String,
    pub(crate) app_protocol: String,
}

impl Object {
    /// Reads an object. Returns `None` if it has no name or namespace, which the API server never sends.
    pub(crate) fn of(kind: Kind, api_version: &str, object: &DynamicObject) -> Option<Self> {
        let metadata = &object.metadata;
        let labels = metadata.labels.as_ref();
        let server = labels.and_then(|labels| labels.get("shoal.dev/server"));
        let said =
            (metadata.annotations.as_ref()).filter(|_| kind != Kind::Service || server.is_some());
        let kept = |name: &&'static str| {
            let value = said?.get(&format!("{PREFIX}{name}"))?;
            Some((*name, cut(value, LONGEST_TEXT).to_owned()))
        };
        let created = metadata.creation_timestamp.as_ref();
        Some(Self {
            kind,
            api_version: api_version.to_owned(),
            namespace: metadata.namespace.clone()?,
            name: metadata.name.clone()?,
            uid: metadata.uid.clone().unwrap_or_default(),
            created: created.map(|time| time.0.to_string()).unwrap_or_default(),
            leaving: metadata.deletion_timestamp.is_some(),
            server: server.cloned(),
            annotations: ANNOTATIONS.iter().filter_map(kept).collect(),
            what: match kind {
                Kind::Service => What::Service(Service::of(&object.data["spec"])),
                Kind::McpLifecycleOperator => {
                    What::Published(text(&object.data["status"]["address"]["url"]))
                }
                Kind::Toolhive => What::Published(text(&object.data["status"]["url"])),
            },
        })
    }

    /// An annotation of Shoal, without the prefix.
    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }

    /// As people write it.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}/{}", self.kind.as_str(), self.namespace, self.name)
    }

    /// Older ones come first; where two were made in the same second, by what they are called.
    pub(crate) fn seniority(&self) -> (&str, Kind, &str, &str) {
        (&self.created, self.kind, &self.namespace, &self.name)
    }
}

impl Service {
    fn of(spec: &Value) -> Self {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let ports = spec["ports"].as_array().into_iter().flatten();
        Self {
            external: spec["type"].as_str() == Some("ExternalName"),
            selects: spec["selector"]
                .as_object()
                .is_some_and(|selector| !selector.is_empty()),
            ports: (ports.take(MOST_PORTS))
                .map(|port| Port {
                    name: word(&port["name"]),
                    number: port["port"].as_u64().unwrap_or_default(),
                    protocol: word(&port["protocol"]),
                    app_protocol: word(&port["appProtocol"]),
                })
                .collect(),
        }
    }
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.is_empty());
    text.map(|text| cut(text, LONGEST_TEXT).to_owned())
}

/// The first bytes of a text, `most` at most.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
