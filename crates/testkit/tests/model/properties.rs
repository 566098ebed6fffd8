//! The properties that must hold in every state, and those that must be possible.
//!
//! Whether every call is answered is a liveness property, which stateright's `eventually` cannot check on cycles and
//! joining paths. [`ANSWERED`] is the equivalent invariant: if only mishaps are possible, the call is answered.
//! Because the graph has no cycle (`has_no_cycle` in `check.rs`), every fair run ends in such a state.

use stateright::Property;

use super::cluster::Cluster;
use super::moves;
use super::setup::{Also, Setup, Tool, Trouble, Way};
use super::state::{Asked, Belief, Event, Phase, State};
use super::worker::{Run, Worker};

pub(crate) const AT_MOST_ONCE: &str = "a call is executed at most once";
pub(crate) const ONE_ANSWER: &str = "a request gets one answer";
pub(crate) const JSON_OR_STREAM: &str = "an answer is either JSON or a stream";
/// Such a call must not run later either.
pub(crate) const NOT_EXECUTED: &str = "a call that ends as not executed has not run";
pub(crate) const KNOWN: &str = "an outcome is unknown only if it was lost";
pub(crate) const ID_IN_LOG: &str = "if a client has an event id, the call is in the journal";
pub(crate) const PREFIX: &str =
    "events arrive in order, without a gap or repeat, and are in the log";
pub(crate) const WORKER_EVENTS: &str = "each event of a worker is logged once, before the answer";
pub(crate) const FREED: &str = "no result is freed before its answer is safe";
pub(crate) const EPOCHS: &str = "the epochs of accepted writes do not decrease";
pub(crate) const FENCED: &str = "no worker obeys a former owner";
pub(crate) const ONE_OWNER: &str = "each epoch has one owner";
pub(crate) const LEARNS: &str = "a former owner learns that it was replaced";
pub(crate) const CERTAIN: &str = "an owner admits requests only while its lease is certain";
pub(crate) const CLAIMS: &str = "nodes claim sessions no more often than something fails";
/// A broken connection, a pause within the lease, or another node's claim is no evidence.
pub(crate) const EVIDENCE: &str = "no node claims from an owner that can be reached";
pub(crate) const CLOSED: &str = "no journal entry stays open";
pub(crate) const NOT_STARTED: &str = "a cancelled call is not started";
pub(crate) const ASKED_FOR: &str = "a call is cancelled only if someone asked for it";
pub(crate) const CANCELS: &str = "an accepted cancellation takes effect";
pub(crate) const ENDED: &str = "a session that has ended starts no call";
pub(crate) const QUESTION: &str = "a question is answered once";
pub(crate) const WRITTEN: &str = "each write of session state happens once";
pub(crate) const ANSWERED: &str = "every call gets its answer in the end";

pub(crate) fn all(setup: &Setup) -> Vec<Property<Cluster>> {
    let mut all = vec![
        Property::always(AT_MOST_ONCE, |_, state: &State| state.past.executions <= 1),
        Property::always(ONE_ANSWER, |_, state| answers(state).count() <= 1),
        Property::always(JSON_OR_STREAM, |_, state: &State| {
            state.client.json.is_empty() || !state.client.has_id
        }),
        Property::always(NOT_EXECUTED, |_, state: &State| {
            let told = answers(state).any(|answer| answer == Event::NotExecuted);
            !told || state.past.executions == 0
        }),
        Property::always(KNOWN, |_, state: &State| {
            let told = answers(state).any(|answer| answer == Event::Unknown);
            !told || state.past.unknowable
        }),
        Property::always(ID_IN_LOG, |_, state: &State| {
            !state.client.has_id || state.store.entry.is_some()
        }),
        Property::always(PREFIX, |_, state| reads_prefix(state)),
        Property::always(WORKER_EVENTS, |_, state| is_sound(state)),
        Property::always(FREED, |_, state| is_freed_when_safe(state)),
        Property::always(EPOCHS, |_, state: &State| !state.past.regressed),
        Property::always(FENCED, |_, state: &State| !state.past.obeyed_former),
        Property::always(ONE_OWNER, |_, state| has_one_owner(state)),
        Property::always(LEARNS, |_, state| learns(state)),
        Property::always(CERTAIN, |_, state: &State| !state.past.admitted_uncertain),
        Property::always(CLAIMS, |Cluster(setup), state: &State| {
            state.past.claims <= setup.mishaps - state.mishaps
        }),
        Property::always(EVIDENCE, |_, state: &State| !state.past.claimed_needlessly),
        Property::always(NOT_STARTED, |_, state: &State| {
            !state.past.started_cancelled
        }),
        Property::always(CLOSED, |Cluster(setup), state| {
            is_closed(setup, state) || !is_settled(setup, state)
        }),
        Property::always(ASKED_FOR, |_, state: &State| !state.past.cancelled_unasked),
        Property::always(ENDED, |_, state: &State| !state.past.started_after_end),
        Property::always(QUESTION, |_, state| runs(state).all(|run| run.inputs <= 1)),
        Property::always(WRITTEN, |_, state: &State| state.past.writings <= 1),
        Property::always(ANSWERED, |Cluster(setup), state| {
            is_answered(state) || !is_settled(setup, state)
        }),
        Property::always(CANCELS, cancels),
    ];
    all.extend(possible(setup));
    all
}

/// Without these properties, a model in which nothing happens would be correct.
fn possible(setup: &Setup) -> Vec<Property<Cluster>> {
    let mut some = Vec::new();
    let moves = setup.has(Trouble::Age) || setup.has(Trouble::RefuseConnections);
    if moves {
        some.push(Property::sometimes(
            "two nodes believe that they own the session",
            |_, state| epochs_believed(state).count() > 1,
        ));
    }
    if setup.way == Way::Hold && setup.tool == Tool::Answers {
        some.push(Property::sometimes(
            "a result comes as JSON",
            |_, state: &State| state.client.json.iter().any(is_result),
        ));
    }
    if setup.tool != Tool::Endless && setup.also != Also::Delete {
        some.push(Property::sometimes(
            "a result comes on a stream",
            |_, state: &State| state.client.read.iter().any(is_result),
        ));
    }
    let fails_over = moves || setup.has(Trouble::CrashNode);
    if fails_over && setup.tool != Tool::Endless && setup.also != Also::Delete {
        some.push(Property::sometimes(
            "a later owner gives the result",
            |_, state: &State| {
                state.store.epoch > 1 && answers(state).any(|answer| is_result(&answer))
            },
        ));
    }
    some
}

fn is_result(answer: &Event) -> bool {
    matches!(answer, Event::Result(_))
}

fn answers(state: &State) -> impl Iterator<Item = Event> {
    let got = state.client.json.iter().chain(&state.client.read);
    got.copied().filter(|event| event.is_answer())
}

fn runs(state: &State) -> impl Iterator<Item = &Run> {
    state.workers.iter().filter_map(Worker::run)
}

fn reads_prefix(state: &State) -> bool {
    let read = &state.client.read;
    match &state.store.entry {
        Some(entry) => entry.events.starts_with(read),
        None => read.is_empty(),
    }
}

fn is_sound(state: &State) -> bool {
    let Some(entry) = &state.store.entry else {
        return true;
    };
    let answer = entry.events.iter().position(|event| event.is_answer());
    let ends = answer.is_none_or(|index| index + 1 == entry.events.len());
    let events = entry.events.iter().filter(|event| event.is_workers());
    let in_between = events.clone().filter(|event| !event.is_answer());
    let of = |event: &Event| match event {
        Event::Progress(of) | Event::Question(of) | Event::Write(of) | Event::Result(of) => {
            Some(*of)
        }
        Event::Cancelled | Event::Unknown | Event::NotExecuted => None,
    };
    let mut executions: Vec<u8> = events.filter_map(of).collect();
    executions.dedup();
    ends && in_between.count() <= 1 && executions.len() <= 1
}

fn is_freed_when_safe(state: &State) -> bool {
    if state.client.json.iter().any(is_result) {
        return true;
    }
    let logged = state.store.entry.as_ref().map_or(0, |entry| entry.seen);
    runs(state).all(|run| run.freed <= logged)
}

fn has_one_owner(state: &State) -> bool {
    let mut epochs: Vec<_> = epochs_believed(state).collect();
    let believed = epochs.len();
    epochs.sort_unstable();
    epochs.dedup();
    epochs.len() == believed
}

fn epochs_believed(state: &State) -> impl Iterator<Item = u8> {
    state.nodes.iter().filter_map(|node| match node.belief {
        Belief::Fresh(epoch) | Belief::Owner(epoch) => Some(epoch),
        Belief::None | Belief::Claiming(..) => None,
    })
}

fn learns(state: &State) -> bool {
    (0..).zip(&state.nodes).all(|(id, node): (usize, _)| {
        let Belief::Owner(epoch) = node.belief else {
            return true;
        };
        let will_ask =
            node.doubts || !node.certain || state.store.notes[id] || !state.store.leases[id];
        epoch == state.store.epoch || will_ask
    })
}

fn is_answered(state: &State) -> bool {
    matches!(state.client.phase, Phase::Answered | Phase::Gone)
}

fn is_settled(setup: &Setup, state: &State) -> bool {
    let mut actions = Vec::new();
    moves::progress(setup, state, &mut actions);
    actions.is_empty()
}

fn is_closed(setup: &Setup, state: &State) -> bool {
    let owner = state.node(state.store.owner);
    let open = state.store.entry.as_ref().is_some_and(|entry| !entry.ended);
    let owns = owner.belief == Belief::Owner(state.store.epoch);
    !(open && owns)
        || setup.tool == Tool::Endless
        || setup.tool == Tool::Asks
        || state.store.deleted
}

fn cancels(Cluster(setup): &Cluster, state: &State) -> bool {
    let asked = setup.also == Also::Cancel && state.client.also == Asked::Accepted;
    let excused = state.past.cancel_lost || state.past.unknowable;
    let told = |run: &Run| run.ended || run.cancelled;
    !asked || excused || runs(state).all(told) || !is_settled(setup, state)
}
