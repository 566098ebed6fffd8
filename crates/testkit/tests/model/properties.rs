//! What must hold in every state, and what must be possible.
//!
//! That every begun call is answered is a liveness property, but it does not stand here as `eventually`:
//! stateright does not see such a property fail on a cycle, and forgets what is open where two paths join
//! (its own documentation says so). [`ANSWERED`] says the same as an invariant: where nothing but trouble
//! can happen, every request is answered. As the graph has no cycle (`has_no_cycle` in `check.rs`), every
//! fair run ends in such a state.

use stateright::Property;

use super::cluster::Cluster;
use super::moves;
use super::setup::Setup;
use super::state::{Event, Link, Phase, Request, Session, State, Stream};

/// A client never gets two answers to one request, and neither does the log hold two.
pub(crate) const ONE_ANSWER: &str = "one answer to a request";
/// What a client has read is a prefix of one stream of the log.
pub(crate) const PREFIX: &str = "no gap, no repeat, in order, all of it in the log";
/// No call is executed twice.
pub(crate) const AT_MOST_ONCE: &str = "a call is executed at most once";
/// No request begins two calls.
pub(crate) const ONE_CALL: &str = "a request begins one call";
/// "Not executed" is true for ever.
pub(crate) const NOT_EXECUTED: &str = "what is called not executed never is";
/// No write is taken from a former owner.
pub(crate) const EPOCHS: &str = "epochs of taken writes never decrease";
/// An epoch belongs to one node.
pub(crate) const ONE_OWNER: &str = "one owner in an epoch";
/// A stream holds the worker's events as they were produced.
pub(crate) const WORKER_EVENTS: &str = "no worker event twice, none skipped";
/// Where only trouble could still happen, every request is answered.
pub(crate) const ANSWERED: &str = "every request is answered in the end";

/// All of them.
pub(crate) fn all(setup: &Setup) -> Vec<Property<Cluster>> {
    let mut all = vec![
        Property::always(ONE_ANSWER, |_, state| one_answer(state)),
        Property::always(PREFIX, |_, state| reads_prefixes(state)),
        Property::always(AT_MOST_ONCE, |_, state| at_most_once(state)),
        Property::always(ONE_CALL, |_, state| one_call(state)),
        Property::always(NOT_EXECUTED, |_, state| not_executed(state)),
        Property::always(EPOCHS, |_, state: &State| !state.store.regressed),
        Property::always(ONE_OWNER, |_, state| one_owner(state)),
        Property::always(WORKER_EVENTS, |_, state| holds_worker_events(state)),
        Property::always(ANSWERED, answered),
        Property::sometimes("a result reaches the client", |_, state| {
            has_read(state, |event| matches!(event, Event::Result(_)))
        }),
        Property::sometimes("outcome unknown reaches the client", |_, state| {
            has_read(state, |event| event == Event::Unknown)
        }),
        Property::sometimes("two nodes believe that they own the session", |_, state| {
            epochs_believed(state).count() > 1
        }),
        Property::sometimes(
            "an owner goes on where a crashed one stopped",
            |_, state| goes_on_after_crash(state),
        ),
    ];
    // A lost reply, and then lost patience.
    if setup.disturbances > 1 {
        let name = "not executed reaches the client";
        all.push(Property::sometimes(name, |_, state| is_rejected(state)));
    }
    all
}

fn is_rejected(state: &State) -> bool {
    let mut requests = state.requests.iter();
    requests.any(|request| request.phase == Phase::Rejected)
}

fn one_answer(state: &State) -> bool {
    (0..).zip(&state.requests).all(|(id, request)| {
        let got = request.seen.iter().map(|(_, event)| event);
        let streams = state.store.streams.iter().filter(|s| s.request == id);
        let logged = streams.clone().flat_map(|stream| &stream.events);
        got.filter(|event| event.is_answer()).count() <= 1
            && logged.filter(|event| event.is_answer()).count() <= 1
            && streams.into_iter().all(ends_with_answer)
    })
}

/// Nothing follows an answer.
fn ends_with_answer(stream: &Stream) -> bool {
    let answer = stream.events.iter().position(|event| event.is_answer());
    answer.is_none_or(|index| index + 1 == stream.events.len())
}

fn reads_prefixes(state: &State) -> bool {
    let mut requests = state.requests.iter();
    requests.all(|request| reads_prefix(state, request))
}

fn reads_prefix(state: &State, request: &Request) -> bool {
    let Some((first, _)) = request.seen.first() else {
        return true;
    };
    let logged = &state.store.streams[usize::from(first.stream)].events;
    request.seen.len() <= logged.len()
        && (1..)
            .zip(&request.seen)
            .zip(logged)
            .all(|((position, (at, event)), logged)| {
                at.stream == first.stream && at.position == position && event == logged
            })
}

fn at_most_once(state: &State) -> bool {
    state.executions.iter().all(|times| *times <= 1)
}

fn one_call(state: &State) -> bool {
    let streams = &state.store.streams;
    let requests = 0..u8::try_from(state.requests.len()).expect("few requests");
    requests
        .into_iter()
        .all(|id| streams.iter().filter(|s| s.request == id).count() <= 1)
}

fn not_executed(state: &State) -> bool {
    let calls = state.store.streams.iter().zip(&state.executions);
    let mut executed = calls.filter(|(_, times)| **times > 0);
    executed.all(|(stream, _)| {
        let request = &state.requests[usize::from(stream.request)];
        request.phase != Phase::Rejected
    })
}

fn one_owner(state: &State) -> bool {
    let mut epochs: Vec<_> = epochs_believed(state).collect();
    let believed = epochs.len();
    epochs.sort_unstable();
    epochs.dedup();
    epochs.len() == believed
}

fn epochs_believed(state: &State) -> impl Iterator<Item = u8> {
    state.nodes.iter().filter_map(|node| match node.session {
        Session::Fresh(epoch) | Session::Active(epoch) => Some(epoch),
        Session::None | Session::Claiming(..) => None,
    })
}

fn holds_worker_events(state: &State) -> bool {
    state.store.streams.iter().all(is_sound)
}

/// A stream holds the worker's events of one execution from the first on, and the journal says how many.
fn is_sound(stream: &Stream) -> bool {
    let events = stream.events.iter().filter(|event| event.is_workers());
    let events: Vec<_> = events.collect();
    let is_in_order = match events[..] {
        [] | [Event::Progress(_)] => true,
        [Event::Progress(first), Event::Result(second)] => first == second,
        _ => false,
    };
    is_in_order && events.len() == usize::from(stream.seen)
}

fn answered(cluster: &Cluster, state: &State) -> bool {
    if state.requests.iter().all(Request::is_answered) {
        return true;
    }
    let mut actions = Vec::new();
    moves::progress(&cluster.0, state, &mut actions);
    !actions.is_empty()
}

fn has_read(state: &State, wanted: fn(Event) -> bool) -> bool {
    let mut seen = state.requests.iter().flat_map(|request| &request.seen);
    seen.any(|(_, event)| wanted(*event))
}

fn goes_on_after_crash(state: &State) -> bool {
    let mut tasks = state.nodes.iter().flat_map(|node| &node.tasks);
    let is_attached = tasks.any(|task| task.seen == 1 && task.link == Link::Up);
    is_attached && !state.nodes[0].alive
}
