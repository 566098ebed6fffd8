//! Merges a document's files: each referenced file becomes a member of the first one.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde_json::{Map, Value};

use super::tidy::ValueRole;

const PARTS: &str = "x-shoal-parts";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::openapi) enum PartLocation {
    File(PathBuf),
    Url(Url),
}

pub(in crate::openapi) struct Parts {
    root: Value,
    location: PartLocation,
    /// The document's own URI (`$self`).
    own_name: Option<String>,
    names: BTreeMap<PartLocation, String>,
    found: Map<String, Value>,
    missing: BTreeMap<String, String>,
    wanted: Vec<PartLocation>,
}

pub(super) struct GatheredParts {
    pub(super) root: Value,
    pub(super) missing: BTreeMap<String, String>,
}

impl PartLocation {
    fn join(&self, reference: &str) -> Result<Self, String> {
        if let Ok(url) = Url::parse(reference) {
            return match url.scheme() {
                "http" | "https" => Ok(Self::Url(url)),
                other => Err(format!("references of the kind {other}: are not followed")),
            };
        }
        match self {
            Self::Url(from) => {
                let url = from.join(reference).map_err(|error| error.to_string())?;
                Ok(Self::Url(url))
            }
            Self::File(from) => {
                let written = percent_decode_str(reference).decode_utf8();
                let written = written.map_err(|_| "it is not UTF-8".to_owned())?;
                let beside = from.parent().unwrap_or(Path::new(""));
                within(&beside.join(&*written)).map(Self::File)
            }
        }
    }

    fn stem(&self) -> String {
        let last = match self {
            Self::File(file) => file.file_name().and_then(|name| name.to_str()),
            Self::Url(url) => url.path_segments().and_then(|mut all| all.next_back()),
        };
        let last = last
            .unwrap_or_default()
            .split('.')
            .next()
            .unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let stem: String = last.chars().filter(|c| plain(*c)).collect();
        if stem.is_empty() {
            "part".to_owned()
        } else {
            stem
        }
    }
}

impl std::fmt::Display for PartLocation {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(file) => file.display().fmt(to),
            Self::Url(url) => url.fmt(to),
        }
    }
}

impl Parts {
    pub(in crate::openapi) fn new(root: Value, location: PartLocation) -> Self {
        let own_name = root.get("$self").and_then(Value::as_str).map(str::to_owned);
        let mut parts = Self {
            root: Value::Null,
            location: location.clone(),
            own_name,
            names: BTreeMap::new(),
            found: Map::new(),
            missing: BTreeMap::new(),
            wanted: Vec::new(),
        };
        parts.root = parts.linked(root, &location, "");
        parts
    }

    pub(in crate::openapi) fn take_wanted(&mut self) -> Vec<PartLocation> {
        std::mem::take(&mut self.wanted)
    }

    pub(in crate::openapi) fn add(&mut self, location: &PartLocation, part: Result<Value, String>) {
        let Some(name) = self.names.get(location).cloned() else {
            return;
        };
        let pointer = format!("/{PARTS}/{name}");
        match part {
            Ok(part) => {
                let part = self.linked(part, location, &pointer);
                self.found.insert(name, part);
            }
            Err(why) => drop(self.missing.insert(pointer, format!("{location}: {why}"))),
        }
    }

    pub(super) fn finish(mut self) -> GatheredParts {
        for (location, name) in &self.names {
            if !self.found.contains_key(name) {
                let pointer = format!("/{PARTS}/{name}");
                let why = || format!("{location} was not read");
                self.missing.entry(pointer).or_insert_with(why);
            }
        }
        if let Value::Object(root) = &mut self.root
            && !self.found.is_empty()
        {
            root.insert(PARTS.to_owned(), Value::Object(self.found));
        }
        GatheredParts {
            root: self.root,
            missing: self.missing,
        }
    }

    fn linked(&mut self, mut value: Value, from: &PartLocation, pointer: &str) -> Value {
        self.link(&mut value, ValueRole::Object, from, pointer);
        value
    }

    fn link(&mut self, value: &mut Value, place: ValueRole, from: &PartLocation, pointer: &str) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    match (place.of(key, value), value) {
                        (ValueRole::Data, _) => {}
                        (_, Value::String(reference)) if key == "$ref" => {
                            if let Some(linked) = self.reference(reference, from, pointer) {
                                *reference = linked;
                            }
                        }
                        (inner, value) => self.link(value, inner, from, pointer),
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.link(item, place, from, pointer);
                }
            }
            _ => {}
        }
    }

    fn reference(&mut self, reference: &str, from: &PartLocation, pointer: &str) -> Option<String> {
        let (target, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if target.is_empty() {
            return (!pointer.is_empty()).then(|| format!("#{pointer}{fragment}"));
        }
        if self.own_name.as_deref() == Some(target) {
            return Some(format!("#{fragment}"));
        }
        let location = match from.join(target) {
            Ok(location) if location == self.location => return Some(format!("#{fragment}")),
            Ok(location) => location,
            Err(why) => {
                self.missing.insert(reference.to_owned(), why);
                return None;
            }
        };
        let name = match self.names.get(&location) {
            Some(name) => name.clone(),
            None => {
                let name = self.free_name(&location.stem());
                self.names.insert(location.clone(), name.clone());
                self.wanted.push(location);
                name
            }
        };
        Some(format!("#/{PARTS}/{name}{fragment}"))
    }

    fn free_name(&self, stem: &str) -> String {
        let taken = |name: &String| self.names.values().any(|other| other == name);
        let numbered = (2..).map(|number| format!("{stem}_{number}"));
        let mut names = std::iter::once(stem.to_owned()).chain(numbered);
        names.find(|name| !taken(name)).unwrap_or_default()
    }
}

/// The path must stay below the document's directory.
fn within(path: &Path) -> Result<PathBuf, String> {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        let stays = match component {
            Component::Normal(name) => {
                resolved.push(name);
                true
            }
            Component::CurDir => true,
            Component::ParentDir => resolved.pop(),
            Component::RootDir | Component::Prefix(_) => false,
        };
        if !stays {
            return Err("it is not below the directory of the document".to_owned());
        }
    }
    Ok(resolved)
}
