//! Converts targets of references, the nearest first, because the limit may leave out the last.

use serde_json::{Map, Value};

use super::super::document::pointer;
use super::{OpenSchema, Schemas, TooLarge};

const SAME_VALUE: [&str; 3] = ["allOf", "anyOf", "oneOf"];

impl<'a> Schemas<'a> {
    /// Also returns whether something is left out.
    pub(in crate::openapi) fn definitions(
        mut self,
    ) -> Result<(Map<String, Value>, bool), TooLarge> {
        while let Some(open) = self.open.pop_front() {
            let (left, queued) = (self.left, self.open.len());
            let converted = match self.converted(open.schema, open.depth) {
                Err(TooLarge) if self.detail.stubs => {
                    self.left = left;
                    for unused in self.open.drain(queued..) {
                        self.names.remove(&unused.place);
                    }
                    self.is_cut = true;
                    Value::Object(self.only_type(open.schema))
                }
                converted => converted?,
            };
            self.definitions.insert(open.name, converted);
        }
        let mut definitions = self.definitions;
        break_circles(&mut definitions);
        Ok((definitions, self.is_cut))
    }

    /// `None` if the reference leads nowhere.
    pub(super) fn definition(
        &mut self,
        reference: &str,
        depth: usize,
    ) -> Result<Option<String>, TooLarge> {
        let document = self.document;
        let (Some(place), Ok(schema)) = (pointer(reference), document.at(reference)) else {
            return Ok(None);
        };
        let name = match self.names.get(&place) {
            Some(name) => name.clone(),
            None => {
                let name = self.free_name(&place);
                self.spend(name.len() + STUB)?;
                self.names.insert(place.clone(), name.clone());
                self.open.push_back(OpenSchema {
                    place,
                    name: name.clone(),
                    schema,
                    depth,
                });
                name
            }
        };
        self.spend(name.len() + 16)?;
        Ok(Some(format!("#/$defs/{name}")))
    }

    fn free_name(&self, place: &str) -> String {
        let last = place.rsplit('/').next().unwrap_or_default();
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let plain: String = last
            .chars()
            .map(|c| if fits(c) { c } else { '_' })
            .collect();
        let taken = |name: &String| self.names.values().any(|other| other == name);
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let mut names = std::iter::once(plain.clone()).chain(numbered);
        let free = names.find(|name| !taken(name));
        free.expect("there are more numbers than names")
    }
}

/// Bytes reserved for a definition that lists only its type.
const STUB: usize = 64;

/// Removes references by which a value's schema leads back to itself. A validator would follow them
/// forever.
fn break_circles(definitions: &mut Map<String, Value>) {
    let edges: Vec<Vec<usize>> = definitions
        .values()
        .map(|schema| {
            let mut found = Vec::new();
            same_value(schema, &mut |reference| {
                let at = reference
                    .and_then(name_of)
                    .and_then(|name| definitions.keys().position(|other| other == name));
                found.extend(at);
            });
            found
        })
        .collect();
    for (from, to) in back_edges(&edges) {
        let target = definitions.keys().nth(to).cloned().unwrap_or_default();
        if let Some(schema) = definitions.values_mut().nth(from) {
            cut(schema, &target);
        }
    }
}

fn back_edges(edges: &[Vec<usize>]) -> Vec<(usize, usize)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        Open,
        Done,
    }
    let mut seen = vec![Seen::No; edges.len()];
    let mut back = Vec::new();
    for start in 0..edges.len() {
        if seen[start] != Seen::No {
            continue;
        }
        seen[start] = Seen::Open;
        let mut path = vec![(start, 0)];
        while let Some((node, next)) = path.last_mut() {
            let Some(&target) = edges[*node].get(*next) else {
                seen[*node] = Seen::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match seen[target] {
                Seen::No => {
                    seen[target] = Seen::Open;
                    path.push((target, 0));
                }
                Seen::Open => back.push((*node, target)),
                Seen::Done => {}
            }
        }
    }
    back
}

fn name_of(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/$defs/")
}

fn same_value<'v>(schema: &'v Value, see: &mut dyn FnMut(Option<&'v str>)) {
    see(schema.get("$ref").and_then(Value::as_str));
    let lists = SAME_VALUE
        .iter()
        .filter_map(|of| schema.get(*of)?.as_array());
    let single = ["not", "if", "then", "else"].iter();
    let single = single.filter_map(|of| schema.get(*of));
    for other in lists.flatten().chain(single) {
        same_value(other, see);
    }
}

fn cut(schema: &mut Value, target: &str) {
    let Value::Object(members) = schema else {
        return;
    };
    let reference = members.get("$ref").and_then(Value::as_str);
    if reference.and_then(name_of) == Some(target) {
        members.remove("$ref");
    }
    for (keyword, value) in members {
        match value {
            Value::Array(list) if SAME_VALUE.contains(&keyword.as_str()) => {
                list.iter_mut().for_each(|schema| cut(schema, target));
            }
            other if ["not", "if", "then", "else"].contains(&keyword.as_str()) => {
                cut(other, target);
            }
            _ => {}
        }
    }
}
