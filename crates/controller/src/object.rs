//! The parts of a Kubernetes object from which the controller makes a pool.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use serde_json::Value;
use shoal_ports::kubernetes::ServerKind;

use crate::target::LONGEST_URL;
use crate::translate::{LONGEST_KEY, LONGEST_PATH, LONGEST_PREFIX};

const PREFIX: &str = "shoal.dev/";
/// The annotations that the controller reads, without their prefix, and the maximum bytes of each.
const ANNOTATIONS: [(&str, usize); 5] = [
    ("path", LONGEST_PATH),
    ("port", LONGEST_WORD),
    ("prefix", LONGEST_PREFIX),
    ("token-secret", LONGEST_SUBDOMAIN + 1 + LONGEST_KEY),
    ("transport", LONGEST_WORD),
];
/// Maximum bytes of a Secret's name in Kubernetes.
const LONGEST_SUBDOMAIN: usize = 253;
/// Maximum bytes of the name of a port, a protocol or a transport. Known names are shorter.
const LONGEST_WORD: usize = 63;
/// Bytes that are kept of a text beyond its limit, so that later checks see that the text is too long. The cut can drop
/// up to 3 of them, to end between characters.
const BEYOND: usize = 4;
/// Maximum ports that are kept of a Service.
const MOST_PORTS: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    pub(crate) kind: ServerKind,
    pub(crate) api_version: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// When the object was created, in RFC 3339, which sorts chronologically.
    pub(crate) created: String,
    pub(crate) leaving: bool,
    /// The value of the label `shoal.dev/server`. A Service is a server only with the value `true`. An operator's
    /// object is a server unless the value is `false`.
    pub(crate) server: Option<String>,
    /// Shoal's annotations, without the prefix.
    pub(crate) annotations: BTreeMap<&'static str, String>,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    Service(Service),
    /// The URL in the status of an operator's object. `None` until the operator sets it.
    Published(Option<String>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Service {
    /// Whether the Service is only an external name.
    pub(crate) external: bool,
    /// Whether a selector chooses the Service's pods. Without a selector, users choose the addresses.
    pub(crate) selects: bool,
    pub(crate) ports: Vec<Port>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) number: u64,
    pub(crate) protocol: String,
    pub(crate) app_protocol: String,
}

impl Object {
    /// Reads an object. Returns `None` if it has no name or namespace, which the API server always sends.
    pub(crate) fn of(kind: ServerKind, api_version: &str, object: &DynamicObject) -> Option<Self> {
        let metadata = &object.metadata;
        let labels = metadata.labels.as_ref();
        let server = labels.and_then(|labels| labels.get("shoal.dev/server"));
        let all = (metadata.annotations.as_ref())
            .filter(|_| kind != ServerKind::Service || server.is_some());
        let said = |(name, longest): &(&'static str, usize)| {
            let value = all?.get(&format!("{PREFIX}{name}"))?;
            Some((*name, bounded(value, *longest)))
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
            annotations: ANNOTATIONS.iter().filter_map(said).collect(),
            what: match kind {
                ServerKind::Service => {
                    What::Service(Service::of(&object.data["spec"], server.is_some()))
                }
                ServerKind::McpLifecycleOperator => {
                    What::Published(text(&object.data["status"]["address"]["url"]))
                }
                ServerKind::Toolhive => What::Published(text(&object.data["status"]["url"])),
            },
        })
    }

    /// Takes the name without the prefix.
    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }

    /// Returns the object's approximate size in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [
            &self.api_version,
            &self.namespace,
            &self.name,
            &self.uid,
            &self.created,
        ];
        let texts = texts
            .into_iter()
            .chain(&self.server)
            .chain(self.annotations.values());
        let what = match &self.what {
            What::Service(service) => service.ports.iter().map(Port::bytes).sum(),
            What::Published(url) => url.as_ref().map_or(0, String::len),
        };
        let texts: usize = texts.map(String::len).sum();
        size_of::<Self>() + self.annotations.len() * size_of::<(&str, String)>() + texts + what
    }

    /// Returns the object's kind, namespace and name as users write them.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}/{}", self.kind.as_str(), self.namespace, self.name)
    }

    /// Returns the key by which objects are sorted: creation time, then kind, namespace and name.
    pub(crate) fn seniority(&self) -> (&str, ServerKind, &str, &str) {
        (&self.created, self.kind, &self.namespace, &self.name)
    }
}

impl Service {
    fn of(spec: &Value, with_ports: bool) -> Self {
        let word = |value: &Value| bounded(value.as_str().unwrap_or_default(), LONGEST_WORD);
        let ports = spec["ports"].as_array().filter(|_| with_ports);
        let ports = ports.into_iter().flatten();
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

impl Port {
    fn bytes(&self) -> usize {
        let texts = [&self.name, &self.protocol, &self.app_protocol];
        size_of::<Self>() + texts.map(String::len).iter().sum::<usize>()
    }
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.is_empty());
    text.map(|text| bounded(text, LONGEST_URL))
}

fn bounded(text: &str, longest: usize) -> String {
    cut(text, longest + BEYOND).to_owned()
}

pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
