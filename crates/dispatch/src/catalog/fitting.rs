//! Removes members of the wrong type from items, because clients' parsers would refuse the whole list.

use shoal_protocol::{RawJson, RawObject};

use super::conflict::ItemKind;
use super::schema_repair::Schema;

enum Shape {
    Text,
    Flag,
    Number,
    /// A number from 0 to 1.
    Share,
    OneOf(&'static [&'static str]),
    Object,
    Schema,
    ListOf(&'static Shape),
    Members(&'static [MemberRule]),
}

struct MemberRule {
    name: &'static str,
    shape: Shape,
    is_needed: bool,
}

enum Fit {
    AsItIs,
    Instead(RawJson),
    No,
}

const fn may(name: &'static str, shape: Shape) -> MemberRule {
    MemberRule {
        name,
        shape,
        is_needed: false,
    }
}

const fn must(name: &'static str, shape: Shape) -> MemberRule {
    MemberRule {
        name,
        shape,
        is_needed: true,
    }
}

const ICON: Shape = Shape::Members(&[
    must("src", Shape::Text),
    may("mimeType", Shape::Text),
    may("sizes", Shape::ListOf(&Shape::Text)),
    may("theme", Shape::OneOf(&["light", "dark"])),
]);
const ICONS: Shape = Shape::ListOf(&ICON);
const HINTS: Shape = Shape::Members(&[
    may("title", Shape::Text),
    may("readOnlyHint", Shape::Flag),
    may("destructiveHint", Shape::Flag),
    may("idempotentHint", Shape::Flag),
    may("openWorldHint", Shape::Flag),
]);
const EXECUTION: Shape = Shape::Members(&[may(
    "taskSupport",
    Shape::OneOf(&["forbidden", "optional", "required"]),
)]);
const ANNOTATIONS: Shape = Shape::Members(&[
    may(
        "audience",
        Shape::ListOf(&Shape::OneOf(&["user", "assistant"])),
    ),
    may("priority", Shape::Share),
    may("lastModified", Shape::Text),
]);
const ARGUMENT: Shape = Shape::Members(&[
    must("name", Shape::Text),
    may("title", Shape::Text),
    may("description", Shape::Text),
    may("required", Shape::Flag),
]);

const TOOL: &[MemberRule] = &[
    may("title", Shape::Text),
    may("description", Shape::Text),
    may("outputSchema", Shape::Schema),
    may("annotations", HINTS),
    may("execution", EXECUTION),
    may("icons", ICONS),
    may("_meta", Shape::Object),
];
const PROMPT: &[MemberRule] = &[
    may("title", Shape::Text),
    may("description", Shape::Text),
    may("arguments", Shape::ListOf(&ARGUMENT)),
    may("icons", ICONS),
    may("_meta", Shape::Object),
];
const RESOURCE: &[MemberRule] = &[
    may("name", Shape::Text),
    may("title", Shape::Text),
    may("description", Shape::Text),
    may("mimeType", Shape::Text),
    may("size", Shape::Number),
    may("annotations", ANNOTATIONS),
    may("icons", ICONS),
    may("_meta", Shape::Object),
];
const SERVER: Shape = Shape::Members(&[
    must("name", Shape::Text),
    must("version", Shape::Text),
    may("title", Shape::Text),
    may("description", Shape::Text),
    may("websiteUrl", Shape::Text),
    may("icons", ICONS),
]);

pub(super) fn item(kind: ItemKind, key: &str, raw: RawJson) -> (RawJson, Vec<String>) {
    let members = match kind {
        ItemKind::Tool => TOOL,
        ItemKind::Prompt => PROMPT,
        ItemKind::Resource | ItemKind::ResourceTemplate => RESOURCE,
    };
    let mut lost = Vec::new();
    let fitted = match fit_members(&raw, members, &mut lost) {
        Fit::Instead(fitted) => fitted,
        Fit::AsItIs | Fit::No => raw,
    };
    let has_name = RawObject::of(&fitted).is_some_and(|item| item.has("name"));
    if has_name {
        return (fitted, lost);
    }
    let mut item = RawObject::of(&fitted).unwrap_or_default();
    item.set("name", RawJson::of(key));
    (item.to_json(), lost)
}

pub(super) fn server_info(raw: RawJson) -> Option<RawJson> {
    match fit(&raw, &SERVER, &mut Vec::new()) {
        Fit::AsItIs => Some(raw),
        Fit::Instead(fitted) => Some(fitted),
        Fit::No => None,
    }
}

fn fit(value: &RawJson, shape: &Shape, lost: &mut Vec<String>) -> Fit {
    let fits = match shape {
        Shape::ListOf(item) => return fit_list(value, item, lost),
        Shape::Members(members) => return fit_members(value, members, lost),
        Shape::Schema => {
            return match Schema::of(value) {
                Schema::Fits => Fit::AsItIs,
                Schema::Repaired(repaired) => Fit::Instead(repaired.schema),
                Schema::Unfit => Fit::No,
            };
        }
        Shape::Text => value.string().is_some(),
        Shape::Flag => matches!(value.as_str(), "true" | "false"),
        Shape::Number => value.read::<f64>().is_ok(),
        Shape::Share => value
            .read::<f64>()
            .is_ok_and(|it| (0.0..=1.0).contains(&it)),
        Shape::OneOf(words) => value
            .string()
            .is_some_and(|it| words.contains(&it.as_str())),
        Shape::Object => value.is_object(),
    };
    match fits {
        true => Fit::AsItIs,
        false => Fit::No,
    }
}

fn fit_list(value: &RawJson, shape: &Shape, lost: &mut Vec<String>) -> Fit {
    let Ok(items) = value.read::<Vec<RawJson>>() else {
        return Fit::No;
    };
    let mut fitted = Vec::with_capacity(items.len());
    let mut is_changed = false;
    for (at, item) in items.into_iter().enumerate() {
        let before = lost.len();
        let fit = fit(&item, shape, lost);
        lost[before..]
            .iter_mut()
            .for_each(|it| *it = format!("{at}.{it}"));
        is_changed |= !matches!(fit, Fit::AsItIs);
        match fit {
            Fit::AsItIs => fitted.push(item),
            Fit::Instead(item) => fitted.push(item),
            Fit::No => lost.push(at.to_string()),
        }
    }
    match is_changed {
        true => Fit::Instead(RawJson::of(&fitted)),
        false => Fit::AsItIs,
    }
}

fn fit_members(value: &RawJson, members: &[MemberRule], lost: &mut Vec<String>) -> Fit {
    let Some(mut object) = RawObject::of(value) else {
        return Fit::No;
    };
    let mut is_changed = false;
    for MemberRule {
        name,
        shape,
        is_needed,
    } in members
    {
        let Some(own) = object.get(name) else {
            if *is_needed {
                return Fit::No;
            }
            continue;
        };
        let before = lost.len();
        let fit = fit(&own, shape, lost);
        lost[before..]
            .iter_mut()
            .for_each(|it| *it = format!("{name}.{it}"));
        match fit {
            Fit::AsItIs => continue,
            Fit::Instead(fitted) => object.set(name, fitted),
            Fit::No if *is_needed => return Fit::No,
            Fit::No => {
                object.remove(name);
                // Some servers write absent members as null.
                if own.as_str() != "null" {
                    lost.truncate(before);
                    lost.push((*name).to_owned());
                }
            }
        }
        is_changed = true;
    }
    match is_changed {
        true => Fit::Instead(object.to_json()),
        false => Fit::AsItIs,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shoal_protocol::RawJson;

    use super::super::conflict::ItemKind;
    use super::{item, server_info};

    fn fitted(kind: ItemKind, raw: &Value) -> (Value, Vec<String>) {
        let (fitted, lost) = item(kind, "key", RawJson::of(raw));
        (fitted.read().unwrap(), lost)
    }

    #[test]
    fn what_is_well_formed_stays_as_it_is() {
        let raw = r#"{ "name": "t", "title":"T", "x":[1.50], "annotations":{"readOnlyHint":true},"icons":[{"src":"a:b"}],
            "outputSchema":{"type":"object","properties":{"a":{}},"required":["a"]},"_meta":{"a":1} }"#;
        let raw = RawJson::parse_text(raw.into()).unwrap();
        let (fitted, lost) = item(ItemKind::Tool, "t", raw.clone());
        assert_eq!((fitted, lost), (raw, Vec::new()));
    }

    #[test]
    fn what_no_client_can_read_is_left_out() {
        let tool = json!({
            "name": "t", "description": 5, "title": null, "_meta": [], "x": 1,
            "annotations": { "readOnlyHint": "yes", "destructiveHint": false },
            "icons": [{ "src": "a:b", "sizes": 5 }, { "mimeType": "m" }],
            "outputSchema": { "type": "array" }, "execution": 5,
        });
        let (tool, lost) = fitted(ItemKind::Tool, &tool);
        let expected = json!({
            "name": "t", "x": 1, "annotations": { "destructiveHint": false }, "icons": [{ "src": "a:b" }],
        });
        assert_eq!(tool, expected);
        let told = [
            "description",
            "outputSchema",
            "annotations.readOnlyHint",
            "execution",
            "icons.0.sizes",
            "icons.1",
            "_meta",
        ];
        assert_eq!(lost, told);
        let prompt = json!({ "name": "p", "arguments": [{ "name": "a", "required": 1 }, {}] });
        let (prompt, lost) = fitted(ItemKind::Prompt, &prompt);
        assert_eq!(
            prompt,
            json!({ "name": "p", "arguments": [{ "name": "a" }] })
        );
        assert_eq!(lost, ["arguments.0.required", "arguments.1"]);
        let resource = json!({ "uri": "a:b", "size": "1", "annotations": { "priority": 2 } });
        let (resource, lost) = fitted(ItemKind::Resource, &resource);
        assert_eq!(
            resource,
            json!({ "uri": "a:b", "annotations": {}, "name": "key" })
        );
        assert_eq!(lost, ["size", "annotations.priority"]);
    }

    #[test]
    fn a_server_has_a_name_and_a_version() {
        let read = |info: Value| server_info(RawJson::of(&info));
        assert!(read(json!({ "name": "a" })).is_none());
        assert!(read(json!({ "name": 5, "version": "1" })).is_none());
        let info = read(json!({ "name": "a", "version": "1", "icons": "x" }));
        assert_eq!(
            info,
            Some(RawJson::of(&json!({ "name": "a", "version": "1" })))
        );
    }
}
