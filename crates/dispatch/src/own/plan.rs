use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{Call, CallFailure, CallOutcome, Caller};
use shoal_protocol::{Index, Method, RawJson, RpcError};
use tokio::time::{Instant, timeout_at};

use super::known::{BRIEFLY, KnownLists, MissingList};
use super::question;
use crate::access::Access;
use crate::asker::Asker;
use crate::dispatch::Dispatch;
use crate::picture::not_ready;
use crate::pools::View;
use crate::shape::Typed;

/// Maximum fetches of a caller's lists for one request. The lists may change meanwhile.
const MOST: usize = 3;
/// Minimum time for which a caller's lists are valid, even if they may not be cached.
const LEAST: Duration = BRIEFLY;

pub(crate) enum Sees {
    All,
    Own(Box<View>, Arc<KnownLists>),
    Unknown,
}

impl Dispatch {
    pub(crate) fn sees<'a>(
        &self,
        view: &View,
        asker: impl Into<Asker<'a>>,
        method: &Method,
        params: Option<&Index<'_>>,
    ) -> Sees {
        if view.own.is_empty() {
            return Sees::All;
        }
        let asker = asker.into();
        let name = named(method, params);
        let name = name.as_ref().and_then(RawJson::text);
        let lister = name.and_then(|name| view.catalog.lister(method, &name));
        if lister.is_some_and(|pool| !view.own.concerns(pool, asker)) {
            return Sees::All;
        }
        let Some(sight) = view.own.sight(asker) else {
            return Sees::All;
        };
        match self.shared.own.known(&sight) {
            Some(known) => Sees::Own(Box::new(known.view(view, &self.shared.config)), known),
            None => Sees::Unknown,
        }
    }

    /// Prefers the shared view; the caller's view may be incomplete.
    pub(crate) fn view_of_tool(&self, caller: &Caller, params: Option<&RawJson>) -> Arc<View> {
        let view = self.shared.view();
        if view.own.is_empty() {
            return view;
        }
        let name = params.and_then(|params| params.member("name"));
        let name = name.as_ref().and_then(RawJson::text);
        let tool = name.and_then(|name| view.catalog.tool(&name));
        match tool.is_some_and(|tool| !view.own.concerns(&tool.pool, caller)) {
            true => view,
            false => self.view_of(caller),
        }
    }

    pub(crate) fn view_of(&self, caller: &Caller) -> Arc<View> {
        let view = self.shared.view();
        let Some(sight) = view.own.sight(caller) else {
            return view;
        };
        match self.shared.own.last(&sight.viewer) {
            Some(known) => Arc::new(known.view(&view, &self.shared.config)),
            None => view,
        }
    }

    pub(crate) async fn learnt_view_of(&self, caller: &Caller, until: Instant) -> Arc<View> {
        let sight = self.shared.view().own.sight(caller);
        if sight.is_some_and(|sight| self.shared.own.known(&sight).is_none()) {
            let caller = Arc::new(caller.clone());
            // Without the lists, the shared view applies.
            let _ = self.learn(&caller, until, Duration::MAX).await;
        }
        self.view_of(caller)
    }

    /// Fetches the caller's lists that are older than `older`. Fails if the servers do not answer
    /// in time.
    pub(crate) async fn learn(
        &self,
        caller: &Arc<Caller>,
        until: Instant,
        older: Duration,
    ) -> Result<(), CallFailure> {
        let sight = self.shared.view().own.sight(caller);
        let Some(sight) = sight else {
            return Ok(());
        };
        let mut asking = question::ask(&self.shared, sight, caller, older);
        match timeout_at(until, asking.changed()).await {
            Ok(_) => Ok(()),
            Err(_) => Err(not_ready(
                "the server did not send this caller's lists in time".to_owned(),
            )),
        }
    }

    /// `asked` counts how often the caller's lists were fetched for this call. `None` if the lists are unknown or,
    /// before the first fetch, if they are too old or their pool has no worker.
    pub(crate) fn list_now(
        &self,
        view: &View,
        access: &Access,
        call: &Call,
        asked: usize,
    ) -> Option<CallOutcome> {
        let Some(sight) = view.own.sight(&call.caller) else {
            return Some(list(view, access, call));
        };
        let known = self.shared.own.known(&sight)?;
        if asked == 0 && known.is_older(self.believed()) {
            return None;
        }
        let own = known.view(view, &self.shared.config);
        if let Some(missing) = known.instead_of_list(view, &call.method) {
            if asked == 0 && view.is_vacant(missing.pool) {
                return None;
            }
            let (shaping, why) = (own.shaping(&call.caller, &call.method), missing.why.clone());
            let revision = call.caller.revision;
            return Some(shaping.outcome(revision, &call.method, why, Typed::No));
        }
        Some(list(&own, access, call))
    }

    /// Waits for a worker if a pool without workers has the list.
    pub(crate) async fn list_once_known(&self, call: &Call) -> CallOutcome {
        for asked in 0..=MOST {
            let listed = self.list_now(&self.shared.view(), &self.access(call), call, asked);
            if let Some(listed) = listed {
                return listed;
            }
            if let Some(pool) = self.only_vacant(call)
                && let Err(refused) = self.shared.worker_of(&pool, call).await
            {
                return refused;
            }
            let older = self.believed();
            if let Err(failure) = self.learn(&call.caller, call.deadline, older).await {
                return CallOutcome::Failed(failure);
            }
        }
        let reason = "the server's lists for this caller change continuously".to_owned();
        CallOutcome::Failed(not_ready(reason))
    }

    fn only_vacant(&self, call: &Call) -> Option<Arc<str>> {
        let view = self.shared.view();
        let known = self.shared.own.known(&view.own.sight(&call.caller)?)?;
        let missing = known.instead_of_list(&view, &call.method)?;
        view.is_vacant(missing.pool).then(|| missing.pool.clone())
    }

    fn believed(&self) -> Duration {
        self.shared.config.catalog.list_ttl.get().max(LEAST)
    }
}

impl Sees {
    pub(crate) fn may_be_more(&self, method: &Method, params: Option<&Index<'_>>) -> bool {
        let Self::Own(view, known) = self else {
            return false;
        };
        let listed = |name: RawJson| {
            let name = name.text()?;
            let lister = view.catalog.lister(method, &name);
            lister.or_else(|| match method {
                Method::ResourcesRead => view.catalog.resource(&name),
                _ => None,
            })
        };
        known.is_older(BRIEFLY) && named(method, params).and_then(listed).is_none()
    }

    pub(crate) fn instead_of_unknown(
        &self,
        access: &Access,
        method: &Method,
        params: Option<&Index<'_>>,
    ) -> Option<CallOutcome> {
        let missing = self.missing_list(access, method, params)?;
        Some(missing.why.clone())
    }

    pub(crate) fn vacant(
        &self,
        access: &Access,
        method: &Method,
        params: Option<&Index<'_>>,
    ) -> Option<Arc<str>> {
        let Self::Own(view, _) = self else {
            return None;
        };
        let pool = self.missing_list(access, method, params)?.pool;
        view.is_vacant(pool).then(|| pool.clone())
    }

    fn missing_list(
        &self,
        access: &Access,
        method: &Method,
        params: Option<&Index<'_>>,
    ) -> Option<MissingList<'_>> {
        let Self::Own(view, known) = self else {
            return None;
        };
        let name = named(method, params)?;
        let name = name.text()?;
        if view.catalog.lister(method, &name).is_some() {
            return None;
        }
        known.instead_of_unknown(access, view, method, &name)
    }
}

pub(crate) const fn may_ask_again(asked: usize) -> bool {
    asked < MOST
}

fn named(method: &Method, params: Option<&Index<'_>>) -> Option<RawJson> {
    params?.get(method.named()?.as_str())
}

pub(crate) fn list(view: &View, access: &Access, call: &Call) -> CallOutcome {
    let Some(pages) = view.catalog.list(&call.method, access) else {
        return match view.unannounced(access.has_rules()) {
            Some(failure) => CallOutcome::Failed(failure),
            None => CallOutcome::Refused(RpcError::method_not_found(call.method.as_str())),
        };
    };
    match pages.get(call.caller.revision.era(), call.params.as_ref()) {
        Ok(page) => CallOutcome::Result(page),
        Err(error) => CallOutcome::Refused(error),
    }
}
