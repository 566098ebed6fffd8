use std::sync::Arc;

use shoal_ports::{CallFailure, CallOutcome, Period, Repeat, Route};
use shoal_protocol::{Era, Index, Method, RawJson, RawObject, Revision, RpcError};

use crate::access::{Access, MayCall};
use crate::catalog::OfferedTool;
use crate::config::{DurabilityPolicy, PoolSettings};
use crate::pools::View;
use crate::slow_checks::ArgumentCheck;

pub(crate) struct Routed {
    pub(crate) route: Route,
    pub(crate) repeat: Repeat,
    pub(crate) asks: bool,
    pub(crate) unchecked: Option<ArgumentCheck>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentTrust {
    Checked,
    /// Not checked here, because Shoal checks such arguments earlier or later.
    Trusted,
}

pub(crate) enum RouteError {
    Answer(CallOutcome),
    NotReady(CallFailure),
}

impl From<RpcError> for RouteError {
    fn from(error: RpcError) -> Self {
        Self::Answer(CallOutcome::Refused(error))
    }
}

pub(crate) fn route(
    view: &View,
    access: &Access,
    arguments: ArgumentTrust,
    revision: Revision,
    method: &Method,
    params: Option<&Index<'_>>,
) -> Result<Routed, RouteError> {
    if !view.catalog.supports(method) {
        return Err(absent(
            view,
            access,
            RpcError::method_not_found(method.as_str()),
        ));
    }
    let mut edit = Edit::of(params);
    let of_mcp = !method.may_be_of_extension();
    if of_mcp {
        // Shoal does not offer servers' tasks, so the call runs normally.
        edit.remove_all(&["task"]);
    }
    if of_mcp && revision.era() == Era::Legacy {
        // Legacy clients know no rounds, so Shoal has not sealed this state, and the client may have forged it.
        edit.remove_all(&["inputResponses", "requestState"]);
    }
    // Only tool calls and extensions' methods, set below, can do more than read.
    let mut repeat = Repeat::Safe;
    let (mut called, mut unchecked, mut asks) = (None, None, false);
    let pool = match method {
        Method::ToolsCall => {
            let offered;
            (offered, asks, unchecked) = tool(view, access, arguments, &mut edit)?;
            let safe = offered.tool.hints.safe_to_repeat();
            repeat = repeat_of(&view.settings, &offered.pool, &offered.tool.name, safe);
            called = Some(Arc::clone(&offered.tool.name));
            offered.pool.clone()
        }
        Method::PromptsGet => {
            let name = edit.string("name")?;
            let (pool, own) = prompt(view, access, &name)?;
            edit.rename(&name, own);
            pool.clone()
        }
        Method::ResourcesRead => {
            let uri = edit.string("uri")?;
            let pool = view.catalog.resource(&uri);
            let pool = pool.filter(|pool| access.resource(&view.catalog, &uri, pool));
            pool.ok_or_else(|| {
                absent(
                    view,
                    access,
                    unknown_resource(revision.resource_not_found(), &uri),
                )
            })?
            .clone()
        }
        Method::Complete => completion(view, access, &mut edit)?,
        _ => {
            let pool = extension(view, access, method.as_str(), &mut edit)?;
            repeat = repeat_of(&view.settings, &pool, method.as_str(), false);
            pool
        }
    };
    let hold = view.settings.of(&pool).hold.map(Period::get);
    let route = Route {
        pool,
        tool: called,
        params: edit.finish(),
        hold,
        rule: access.rule(),
    };
    Ok(Routed {
        route,
        repeat,
        asks,
        unchecked,
    })
}

/// `safe` is the server's declaration. A list that names the tool wins over the pool's policy, and `journaled` over
/// `repeatable`.
pub(crate) fn repeat_of(
    settings: &PoolSettings,
    pool: &Arc<str>,
    called: &str,
    safe: bool,
) -> Repeat {
    let config = settings.of(pool);
    let listed = |names: &[String]| names.iter().any(|name| name == called);
    if listed(&config.journaled) {
        return Repeat::Never;
    }
    if listed(&config.repeatable) {
        return Repeat::Safe;
    }
    match config.durability {
        DurabilityPolicy::AllTools => Repeat::Never,
        DurabilityPolicy::NoTool => Repeat::Safe,
        DurabilityPolicy::Auto if safe => Repeat::Safe,
        DurabilityPolicy::Auto => Repeat::Never,
    }
}

pub(crate) fn unknown_resource(code: i64, uri: &str) -> RpcError {
    let mut data = RawObject::default();
    data.set("uri", RawJson::of(uri));
    RpcError::new(code, format!("unknown resource: {uri}")).with_data(data.to_json())
}

/// If the catalog is incomplete, returns a refusal that is safe to retry.
fn absent(view: &View, access: &Access, error: RpcError) -> RouteError {
    match view.unannounced(access.has_rules()) {
        Some(failure) => RouteError::NotReady(failure),
        None => error.into(),
    }
}

fn tool<'v>(
    view: &'v View,
    access: &Access,
    check: ArgumentTrust,
    edit: &mut Edit,
) -> Result<(&'v OfferedTool, bool, Option<ArgumentCheck>), RouteError> {
    let name = edit.string("name")?;
    let offered = view.catalog.tool(&name);
    let allowed = offered.map(|offered| (offered, access.tool(&view.catalog, &name, offered)));
    let Some((offered, may)) = allowed.filter(|(_, may)| *may != MayCall::No) else {
        let unknown = RpcError::invalid_params(format!("unknown tool: {name}"));
        return Err(absent(view, access, unknown));
    };
    let asks = may == MayCall::OnceAgreed;
    let arguments = edit.given("arguments");
    if arguments.as_ref().is_some_and(|given| !given.is_object()) {
        return Err(RpcError::invalid_params("arguments must be an object").into());
    }
    edit.rename(&name, &offered.tool.name);
    if check == ArgumentTrust::Checked {
        let check = ArgumentCheck {
            tool: Arc::clone(&offered.tool),
            name,
            arguments: arguments.unwrap_or(RawJson::from_static("{}")),
            policy: view.settings.of(&offered.pool).arguments,
        };
        match check.at_once() {
            Some(checked) => checked.map_err(RouteError::Answer)?,
            None => return Ok((offered, asks, Some(check))),
        }
    }
    Ok((offered, asks, None))
}

fn prompt<'a>(
    view: &'a View,
    access: &Access,
    name: &'a str,
) -> Result<(&'a Arc<str>, &'a str), RouteError> {
    let listed = view.catalog.prompt(name);
    let listed = listed.map(|prompt| (&prompt.pool, prompt.name.as_str()));
    // A backend may read another spelling as a hidden prompt.
    let may_be_unlisted = !access.has_rules();
    let unlisted = || unlisted_prompt(view, name).filter(|_| may_be_unlisted);
    let found = listed.or_else(unlisted);
    let found = found.filter(|(pool, _)| access.prompt(&view.catalog, name, pool));
    let unknown = || RpcError::invalid_params(format!("unknown prompt: {name}"));
    found.ok_or_else(|| absent(view, access, unknown()))
}

/// The only pool with prompts is not known while pools are missing or if lists differ by caller.
fn unlisted_prompt<'a>(view: &'a View, name: &'a str) -> Option<(&'a Arc<str>, &'a str)> {
    let pool = view.catalog.only_pool_of_prompts()?;
    let settings = view.settings.of(pool);
    let own = name.strip_prefix(&*settings.prefix)?;
    let own = settings.prompts.unlisted(own)?;
    (view.own.is_empty() && view.unannounced(false).is_none()).then_some((pool, own))
}

fn extension(
    view: &View,
    access: &Access,
    method: &str,
    edit: &mut Edit,
) -> Result<Arc<str>, RouteError> {
    let member = |name: &str| edit.get(name).and_then(|value| value.string());
    let (name, uri) = (member("name"), member("uri"));
    let catalog = &view.catalog;
    let pool = catalog.extension(method, name.as_deref(), uri.as_deref());
    let pool = pool.filter(|pool| access.method(catalog, method, pool));
    let pool = pool.ok_or_else(|| absent(view, access, RpcError::method_not_found(method)))?;
    if let Some(name) = name {
        let tool = catalog.tool(&name).filter(|tool| tool.pool == *pool);
        let prompt = catalog.prompt(&name).filter(|prompt| prompt.pool == *pool);
        match (tool, prompt) {
            (Some(offered), _) => edit.rename(&name, &offered.tool.name),
            (None, Some(prompt)) => edit.rename(&name, &prompt.name),
            (None, None) => {}
        }
    }
    Ok(pool.clone())
}

fn completion(view: &View, access: &Access, edit: &mut Edit) -> Result<Arc<str>, RouteError> {
    let reference = edit.get("ref");
    let mut reference = reference
        .as_ref()
        .and_then(RawObject::of)
        .ok_or_else(|| RpcError::invalid_params("params.ref must be an object"))?;
    let member = |name: &str| reference.get(name).and_then(|value| value.string());
    match member("type").as_deref() {
        Some("ref/prompt") => {
            let name = member("name")
                .ok_or_else(|| RpcError::invalid_params("params.ref.name must be a string"))?;
            let (pool, own) = prompt(view, access, &name)?;
            if own != name {
                reference.set("name", RawJson::of(own));
                edit.set("ref", reference.to_json());
            }
            Ok(pool.clone())
        }
        Some("ref/resource") => {
            let uri = member("uri")
                .ok_or_else(|| RpcError::invalid_params("params.ref.uri must be a string"))?;
            let pool = view.catalog.resource_reference(&uri);
            let pool = pool.filter(|pool| match view.catalog.template(&uri) {
                Some(_) => access.template(&view.catalog, &uri, pool),
                None => access.resource(&view.catalog, &uri, pool),
            });
            let unknown = || {
                let code = shoal_protocol::code::INVALID_PARAMS;
                absent(view, access, unknown_resource(code, &uri))
            };
            Ok(pool.ok_or_else(unknown)?.clone())
        }
        _ => Err(RpcError::invalid_params(
            "params.ref.type must be \"ref/prompt\" or \"ref/resource\"",
        )
        .into()),
    }
}

struct Edit<'a> {
    given: Option<&'a Index<'a>>,
    changed: Option<RawObject>,
}

impl<'a> Edit<'a> {
    fn of(given: Option<&'a Index<'a>>) -> Self {
        Self {
            given,
            changed: None,
        }
    }

    fn get(&self, name: &str) -> Option<RawJson> {
        match &self.changed {
            Some(changed) => changed.get(name),
            None => self.given?.get(name),
        }
    }

    /// Drops a null, which some clients write for an absent member and servers refuse.
    fn given(&mut self, name: &str) -> Option<RawJson> {
        let value = self.get(name)?;
        if value.is_null() {
            self.change().remove(name);
            return None;
        }
        Some(value)
    }

    fn string(&self, name: &str) -> Result<String, RpcError> {
        self.get(name)
            .and_then(|value| value.string())
            .ok_or_else(|| RpcError::invalid_params(format!("params.{name} must be a string")))
    }

    fn remove_all(&mut self, names: &[&str]) {
        if self.given.is_some_and(|given| given.has_any(names)) {
            for name in names {
                self.change().remove(name);
            }
        }
    }

    fn set(&mut self, name: &str, value: RawJson) {
        self.change().set(name, value);
    }

    fn change(&mut self) -> &mut RawObject {
        let given = self.given.map(Index::whole);
        let take_apart = || given.and_then(RawObject::of).unwrap_or_default();
        self.changed.get_or_insert_with(take_apart)
    }

    fn rename(&mut self, from: &str, to: &str) {
        if from != to {
            self.set("name", RawJson::of(to));
        }
    }

    fn finish(self) -> Option<RawJson> {
        match self.changed {
            Some(changed) => Some(changed.to_json()),
            None => self.given.map(|given| given.whole().clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::json;
    use shoal_ports::Repeat::{Never, Safe};
    use shoal_protocol::RawJson;

    use super::repeat_of;
    use crate::catalog::{CatalogTool, OfferedTool};
    use crate::config::{DurabilityPolicy, PoolConfig, PoolSettings};

    fn tool(name: &str, read_only: bool) -> OfferedTool {
        let raw = json!({"name":name,"annotations":{"readOnlyHint":read_only}});
        OfferedTool {
            pool: "a".into(),
            tool: Arc::new(CatalogTool::read(&RawJson::of(&raw)).unwrap()),
        }
    }

    #[test]
    fn hints_decide_unless_the_configuration_does() {
        let of = |pool: &PoolConfig, tool: &OfferedTool| {
            let pools = BTreeMap::from([("a".to_owned(), pool.clone())]);
            let OfferedTool { pool, tool } = tool;
            let safe = tool.hints.safe_to_repeat();
            repeat_of(&PoolSettings::new(pools, false), pool, &tool.name, safe)
        };
        let (plain, safe) = (tool("t", false), tool("t", true));
        assert_eq!(of(&PoolConfig::default(), &plain), Never);
        assert_eq!(of(&PoolConfig::default(), &safe), Safe);
        let mut pool = PoolConfig {
            durability: DurabilityPolicy::NoTool,
            ..PoolConfig::default()
        };
        assert_eq!(of(&pool, &plain), Safe);
        pool.journaled.push("t".into());
        pool.repeatable.push("t".into());
        assert_eq!(of(&pool, &safe), Never);
        pool.journaled.clear();
        pool.durability = DurabilityPolicy::AllTools;
        assert_eq!(of(&pool, &plain), Safe);
        assert_eq!(of(&pool, &tool("other", true)), Never);
    }
}
