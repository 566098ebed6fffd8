//! Servers declare their extensions without the methods, so any method unknown to MCP may belong to one.

use std::sync::Arc;

use shoal_protocol::task::TASKS;
use shoal_protocol::{RawJson, RawObject};

use super::rules::MethodRules;
use super::{Catalog, Pool};
use crate::config::PoolSettings;

const DECLARED_IN: [&str; 2] = ["extensions", "experimental"];

#[derive(Debug)]
pub(super) struct ExtensionPool {
    pool: Arc<str>,
    names: Vec<String>,
    methods: MethodRules,
}

impl ExtensionPool {
    pub(super) fn all(pools: &[Pool], settings: &PoolSettings) -> Vec<Self> {
        let declaring = pools.iter().map(|pool| Self {
            names: names(&pool.compiled.source.capabilities.0),
            pool: pool.name.clone(),
            methods: settings.of(&pool.name).methods.clone(),
        });
        declaring.filter(|it| !it.names.is_empty()).collect()
    }

    /// Whether the method starts with the extension's name or the name's last part: `skills/list` belongs to
    /// `io.modelcontextprotocol/skills`.
    fn is_named_by(&self, method: &str) -> bool {
        let begins = |name: &str| {
            let rest = method.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        self.names.iter().any(|name| {
            let last = name.rsplit_once('/').map_or(&**name, |(_, last)| last);
            begins(name) || begins(last)
        })
    }
}

fn names(capabilities: &RawJson) -> Vec<String> {
    let members = DECLARED_IN.iter().filter_map(|name| {
        let declared = RawObject::of(&capabilities.member(name)?)?;
        let names = declared.iter().filter(|(_, value)| value.is_object());
        Some(names.map(|(name, _)| name).collect::<Vec<_>>())
    });
    members.flatten().filter(|name| name != TASKS).collect()
}

impl Catalog {
    /// Prefers pools with an extension whose name fits the method, then the pool that has the parameters' resource,
    /// tool or prompt, then the first pool.
    pub(crate) fn extension(
        &self,
        method: &str,
        name: Option<&str>,
        uri: Option<&str>,
    ) -> Option<&Arc<str>> {
        let named = method.strip_prefix("notifications/").unwrap_or(method);
        let may = |it: &&ExtensionPool| it.methods.admits(method);
        let mut candidates: Vec<_> = self.extension_pools.iter().filter(may).collect();
        if candidates.iter().any(|it| it.is_named_by(named)) {
            candidates.retain(|it| it.is_named_by(named));
        }
        let tool = name.and_then(|name| Some(&self.tool(name)?.pool));
        let prompt = name.and_then(|name| Some(&self.prompt(name)?.pool));
        let resource = uri.and_then(|uri| self.resource(uri));
        let having = [resource, tool, prompt]
            .into_iter()
            .flatten()
            .find_map(|pool| {
                let has = |it: &&&ExtensionPool| it.pool == *pool;
                candidates.iter().find(has)
            });
        having.or(candidates.first()).map(|it| &it.pool)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shoal_protocol::RawJson;

    use super::{ExtensionPool, MethodRules, names};

    #[test]
    fn extensions_are_what_is_declared_but_tasks() {
        let of = |capabilities: Value| names(&RawJson::of(&capabilities));
        let tasks = "io.modelcontextprotocol/tasks";
        assert_eq!(
            of(json!({"extensions":{"a/b":{},(tasks):{},"c":true},"experimental":{"d":{}}})),
            ["a/b", "d"]
        );
        assert!(of(json!({"tools":{},"experimental":{},"extensions":[]})).is_empty());
    }

    #[test]
    fn a_method_is_named_after_its_extension() {
        let pool = ExtensionPool {
            pool: "a".into(),
            names: vec!["io.modelcontextprotocol/skills".into(), "plain".into()],
            methods: MethodRules::default(),
        };
        for method in [
            "skills/list",
            "io.modelcontextprotocol/skills/get",
            "plain/x",
        ] {
            assert!(pool.is_named_by(method), "{method}");
        }
        for method in ["skillset/list", "skills", "resources/directory/read"] {
            assert!(!pool.is_named_by(method), "{method}");
        }
    }
}
