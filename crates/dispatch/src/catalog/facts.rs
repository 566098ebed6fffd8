use shoal_ports::{ListScope, ServerInfo};
use shoal_protocol::{RawJson, RawObject};

use super::{Pool, fitting};
use crate::config::Config;

/// Not copied from servers, because Shoal itself serves tasks.
const TASKS: &str = "tasks";
const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// Capabilities that Shoal derives from the pools' offers instead of merging them.
const OWN: [&str; 5] = ["tools", "resources", "prompts", "completions", "logging"];

const OF_OBJECTS: [&str; 2] = ["experimental", "extensions"];

pub(super) fn server_info(pools: &[Pool], config: &Config) -> RawJson {
    if let Some(info) = &config.catalog.server_info {
        return implementation(info);
    }
    let only = match pools {
        [pool] => pool.compiled.source.server_info.clone(),
        _ => None,
    };
    only.and_then(fitting::server_info).unwrap_or_else(|| {
        implementation(&ServerInfo {
            name: "shoal".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            title: None,
            description: None,
            website_url: None,
        })
    })
}

/// Writes `Implementation` of the protocol.
fn implementation(info: &ServerInfo) -> RawJson {
    let mut object = RawObject::of(&RawJson::of(info)).unwrap_or_default();
    if let Some(url) = object.remove("website_url") {
        object.set("websiteUrl", url);
    }
    object.to_json()
}

pub(super) fn capabilities(pools: &[Pool]) -> RawJson {
    let any = |has: &dyn Fn(&Pool) -> bool| pools.iter().any(has);
    let mut merged = RawObject::default();
    let listed = RawJson::from_static(r#"{"listChanged":true}"#);
    if any(&|pool| pool.compiled.has_tools()) {
        merged.set("tools", listed.clone());
    }
    if any(&|pool| pool.compiled.has_resources()) {
        let are_watched = |pool: &Pool| {
            pool.compiled.has_resources() && pool.compiled.source.lists == ListScope::Shared
        };
        let resources = match any(&are_watched) {
            true => RawJson::from_static(r#"{"subscribe":true,"listChanged":true}"#),
            false => listed.clone(),
        };
        merged.set("resources", resources);
    }
    if any(&|pool| pool.compiled.has_prompts()) {
        merged.set("prompts", listed);
    }
    for plain in ["completions", "logging"] {
        if any(&|pool| pool.compiled.source.declares(plain)) {
            merged.set(plain, RawJson::from_static("{}"));
        }
    }
    for pool in pools {
        let declared = RawObject::of(&pool.compiled.source.capabilities.0).unwrap_or_default();
        for (name, value) in declared.iter() {
            // A malformed capability would keep clients from connecting.
            let is_readable = !OF_OBJECTS.contains(&name.as_str()) || value.is_object();
            if name != TASKS && !OWN.contains(&name.as_str()) && is_readable {
                merge_member(&mut merged, &name, &value);
            }
        }
    }
    merged.to_json()
}

/// Unless both values are objects, the first stays.
fn merge_member(merged: &mut RawObject, name: &str, value: &RawJson) {
    let Some(added) = RawObject::of(value) else {
        merged.set(name, merged.get(name).unwrap_or_else(|| value.clone()));
        return;
    };
    let mut union = match merged.get(name) {
        None => RawObject::default(),
        Some(earlier) => match RawObject::of(&earlier) {
            Some(earlier) => earlier,
            None => return,
        },
    };
    for (key, value) in added.iter() {
        let is_readable = !OF_OBJECTS.contains(&name) || value.is_object();
        if key != TASKS_EXTENSION && !union.has(&key) && is_readable {
            union.set(&key, value);
        }
    }
    merged.set(name, union.to_json());
}

pub(super) fn instructions(pools: &[Pool], config: &Config) -> Option<String> {
    if config.catalog.instructions.is_some() {
        return config.catalog.instructions.clone();
    }
    let all: Vec<&str> = pools
        .iter()
        .filter_map(|pool| pool.compiled.source.instructions.as_deref())
        .collect();
    (!all.is_empty()).then(|| all.join("\n\n"))
}
