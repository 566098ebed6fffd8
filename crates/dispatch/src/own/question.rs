use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use shoal_ports::{
    Binding, Call, CallEventKind, CallFailure, CallId, CallOutcome, Caller, LogFilter, MayStart,
    PoolCatalog, Repeat, Route, shown,
};
use shoal_protocol::{Method, RawJson, RpcError};
use tokio::sync::watch;
use tokio::time::Instant;

use super::known::{KnownLists, LISTS, ListAnswer};
use super::sight::{OwnPart, OwnSight};
use super::views::OF_PRINCIPAL;
use crate::picture::not_ready;
use crate::shared::DispatchState;
use crate::worker_call::{CallOrigin, NotStarted, WorkerCall};

const WITHIN: Duration = Duration::from_secs(30);
/// Maximum bytes of one pool's lists. A principal may see several pools.
const BYTES: usize = OF_PRINCIPAL / 8;
const REFUSAL: usize = 2048;
const PARTS: [(&str, &str); 4] = [
    ("tools", "tools"),
    ("resources", "resources"),
    ("resources", "resourceTemplates"),
    ("prompts", "prompts"),
];

/// Fetches lists older than `older` once for all waiting requests. The channel closes when the lists are known. The
/// fetch continues without receivers.
pub(super) fn ask(
    shared: &Arc<DispatchState>,
    sight: OwnSight,
    caller: &Arc<Caller>,
    older: Duration,
) -> watch::Receiver<()> {
    let viewer = sight.viewer.clone();
    shared.own.asking(&viewer, |asking| {
        let (shared, caller) = (shared.clone(), caller.clone());
        tokio::spawn(async move {
            let before = shared.own.last(&sight.viewer);
            let answers = sight.parts.iter().map(|part| {
                let mut known = before.iter().flat_map(|before| &before.answers);
                let same = known.find(|it| it.pool == part.pool).cloned();
                part_of(&shared, part, &caller, same, older)
            });
            let known = Arc::new(KnownLists::new(join_all(answers).await));
            // Builds the caller's catalog, so that `keep` counts its bytes too.
            let _ = known.view(&shared.view(), &shared.config);
            shared.own.keep(&sight.viewer, known);
            drop(asking);
        });
    })
}

async fn part_of(
    shared: &Arc<DispatchState>,
    part: &OwnPart,
    caller: &Arc<Caller>,
    before: Option<Arc<ListAnswer>>,
    older: Duration,
) -> Arc<ListAnswer> {
    let view = shared.view();
    if let Some(before) = &before
        && before.fits(&part.pool, part.numbers)
        && !before.is_older(older)
        && !(before.was_vacant && view.has_worker(&part.pool))
    {
        return before.clone();
    }
    let read = Instant::now();
    // Other pools' lists do not wait for a pool without workers.
    let vacant = view.is_vacant(&part.pool).then(|| {
        shared.wake(&part.pool, &caller.principal);
        not_ready(format!("the pool {} has no worker yet", part.pool))
    });
    let offered = view.offered.iter().find(|pool| pool.name == part.pool);
    let shared_by_all = offered.map(|pool| pool.compiled.source.clone());
    let mut source = PoolCatalog::clone(&shared_by_all.unwrap_or_default());
    drop(view);
    let declares_any = PARTS.iter().any(|(name, _)| source.declares(name));
    let asked = PARTS.map(|(capability, _)| !declares_any || source.declares(capability));
    let lists = LISTS
        .iter()
        .zip(asked)
        .map(async |(method, asked)| match (asked, &vacant) {
            (true, None) => list(shared, part, caller, method).await,
            (true, Some(failure)) => Err(CallOutcome::Failed(failure.clone())),
            (false, _) => Ok(RawJson::from_static("{}")),
        });
    let mut answer = ListAnswer {
        pool: part.pool.clone(),
        numbers: part.numbers,
        source: Arc::default(),
        missing: Default::default(),
        was_vacant: vacant.is_some(),
        read,
    };
    let mut room = BYTES;
    for (at, list) in join_all(lists).await.into_iter().enumerate() {
        let items = match &list {
            Ok(result) => items(result, PARTS[at].1, &mut room),
            Err(outcome) => Err(outcome.clone()),
        };
        let ttl = list
            .ok()
            .and_then(|result| result.member("ttlMs")?.read().ok());
        source.ttl_ms[at] = ttl;
        *list_of(&mut source, at) = match (items, &before) {
            (Ok(items), _) => items,
            // The previous list applies while the server is briefly away.
            (Err(CallOutcome::Failed(_)), Some(before)) if before.missing[at].is_none() => {
                list_of(&mut PoolCatalog::clone(&before.source), at).clone()
            }
            (Err(outcome), _) => {
                tracing::debug!(pool = %part.pool, principal = caller.principal.as_str(), list = LISTS[at].as_str(), ?outcome, "cannot list a server's items to a caller");
                answer.missing[at] = Some(brief(outcome));
                Vec::new()
            }
        };
    }
    answer.source = Arc::new(source);
    Arc::new(answer)
}

fn list_of(source: &mut PoolCatalog, at: usize) -> &mut Vec<RawJson> {
    match at {
        0 => &mut source.tools,
        1 => &mut source.resources,
        2 => &mut source.resource_templates,
        _ => &mut source.prompts,
    }
}

/// Copies the items, because slices would keep the whole answer in memory.
fn items(result: &RawJson, member: &str, room: &mut usize) -> Result<Vec<RawJson>, CallOutcome> {
    let refused = |why: String| CallOutcome::Error(RpcError::internal(why));
    let Some(items) = result.member(member) else {
        return Ok(Vec::new());
    };
    *room = room.checked_sub(items.len()).ok_or_else(|| {
        refused(format!(
            "the server's lists have more than {BYTES} bytes for this caller"
        ))
    })?;
    (items.read::<Vec<RawJson>>()).map_err(|_| refused(format!("`{member}` is not an array")))
}

fn brief(outcome: CallOutcome) -> CallOutcome {
    let shorter = |mut error: RpcError| {
        error.message = shown(&error.message, REFUSAL);
        error.data = error.data.filter(|data| data.len() <= REFUSAL);
        error
    };
    match outcome {
        CallOutcome::Error(error) => CallOutcome::Error(shorter(error)),
        CallOutcome::Refused(error) => CallOutcome::Refused(shorter(error)),
        other => other,
    }
}

async fn list(
    shared: &Arc<DispatchState>,
    part: &OwnPart,
    caller: &Arc<Caller>,
    method: &Method,
) -> Result<RawJson, CallOutcome> {
    let call = Call {
        id: CallId::generate(),
        method: method.clone(),
        params: None,
        caller: caller.clone(),
        progress_token: None,
        log: LogFilter::Off,
        deadline: Instant::now() + WITHIN,
        repeat: Repeat::Safe,
        trace: None,
        binding: None,
        may_start: MayStart::Yes,
        epoch: None,
    };
    let route = Route {
        pool: part.pool.clone(),
        tool: None,
        params: None,
        hold: None,
        rule: None,
    };
    let first = part.worker.clone().map(|worker| Binding {
        worker,
        ledger: None,
    });
    let origin = CallOrigin::new(call, route, shared).first_at(first);
    let started = WorkerCall::start(shared.clone(), origin).await;
    let mut running = started.map_err(|not| CallOutcome::Failed(NotStarted::give_up(not)))?;
    let outcome = match running.take_end() {
        Some((outcome, _)) => outcome,
        None => loop {
            match running.next().await {
                Ok(CallEventKind::Finished(outcome)) => break outcome,
                Ok(_) => {}
                Err(superseded) => break CallOutcome::Failed(superseded.failure()),
            }
        },
    };
    match outcome {
        CallOutcome::Result(result) => Ok(result),
        // Listing has no side effects, so a retry is safe.
        CallOutcome::Failed(CallFailure::OutcomeUnknown { reason }) => {
            Err(CallOutcome::Failed(CallFailure::not_executed(reason)))
        }
        other => Err(other),
    }
}
