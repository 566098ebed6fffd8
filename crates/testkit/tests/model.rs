//! A model of the protocol for a call that must not run twice, with claims, leases, evidence, workers' ledgers, redelivery
//! and resumption.
//!
//! The checker explores every order of steps with a bounded number of mishaps. The model represents
//! the design: it cannot find steps that the code wrongly takes to be atomic. Each exploration adds
//! one feature to the single call, and chooses the mishaps. The model omits releases, appends of
//! several events, and sizes, because they follow from the modelled steps.
//!
//! Begin with `model/action.rs` and `model/properties.rs`. `model/fault.rs` lists the rules that can be broken on purpose.

mod model {
    pub(crate) mod action;
    pub(crate) mod check;
    pub(crate) mod cluster;
    pub(crate) mod driver;
    pub(crate) mod edge;
    pub(crate) mod fault;
    pub(crate) mod mishaps;
    pub(crate) mod moves;
    pub(crate) mod ownership;
    pub(crate) mod properties;
    pub(crate) mod setup;
    pub(crate) mod state;
    pub(crate) mod store;
    pub(crate) mod trouble;
    pub(crate) mod worker;
}

use model::check::{breaks, has_no_cycle, holds};
use model::fault::Fault;
use model::properties as must;
use model::setup::Trouble::{
    Age, BreakClient, BreakEdge, BreakLink, CrashNode, CrashWorker, Cut, Forget, Full, GiveUp,
    HangUp, Limit, LoseAnswer, LoseReply, PlanDisagrees, PlanRefuses, RefuseConnections, StoreAway,
};
use model::setup::{Also, Setup, Tool, Way};

fn short_call() -> Setup {
    Setup::hold(
        "a short call",
        3,
        &[BreakEdge, BreakLink, CrashNode, Age, LoseAnswer, LoseReply],
    )
}

fn three_owners() -> Setup {
    Setup {
        nodes: 3,
        ..Setup::hold(
            "three owners",
            2,
            &[BreakEdge, CrashNode, Age, RefuseConnections],
        )
    }
}

fn paused_owners() -> Setup {
    Setup::hold("paused owners", 4, &[BreakEdge, Age])
}

fn lost_workers() -> Setup {
    Setup::hold(
        "lost workers",
        4,
        &[BreakLink, BreakEdge, CrashWorker, Forget, GiveUp],
    )
}

fn refusing_workers() -> Setup {
    Setup::hold(
        "refusing workers",
        4,
        &[BreakEdge, BreakLink, CrashNode, Full, Cut, LoseReply],
    )
}

/// Sets up owners whose plans take time, refuse the call, or disagree with the edge's choice.
fn planning() -> Setup {
    Setup::hold(
        "planning",
        4,
        &[
            BreakEdge,
            BreakLink,
            CrashNode,
            Age,
            PlanRefuses,
            PlanDisagrees,
        ],
    )
}

fn planning_and_refusing_workers() -> Setup {
    Setup::hold(
        "planning, and refusing workers",
        4,
        &[BreakEdge, Full, Cut, LoseReply, PlanRefuses, PlanDisagrees],
    )
}

fn limits() -> Setup {
    Setup::hold("limits", 3, &[BreakEdge, CrashNode, Age, Limit, Full])
}

fn evidence() -> Setup {
    Setup::hold("evidence", 4, &[RefuseConnections, BreakEdge, CrashNode])
}

fn asked_worker() -> Setup {
    Setup {
        edge_asks: true,
        ..Setup::hold(
            "the edge asks the worker",
            3,
            &[BreakEdge, CrashNode, Age, LoseAnswer, LoseReply],
        )
    }
}

fn store_away() -> Setup {
    Setup::hold(
        "the store away",
        4,
        &[StoreAway, LoseReply, BreakEdge, CrashNode],
    )
}

fn stream() -> Setup {
    Setup {
        tool: Tool::Speaks,
        ..Setup::hold(
            "a stream",
            3,
            &[BreakClient, BreakEdge, BreakLink, CrashNode, Age, LoseReply],
        )
    }
}

fn batch() -> Setup {
    Setup {
        way: Way::JournalFirst,
        tool: Tool::Speaks,
        ..Setup::hold(
            "a batch",
            3,
            &[BreakClient, BreakEdge, CrashNode, Age, LoseReply, Full],
        )
    }
}

/// Sets up HTTP+SSE, where a call is not held.
fn single_stream() -> Setup {
    Setup {
        way: Way::SingleStream,
        ..Setup::hold(
            "HTTP+SSE",
            3,
            &[BreakEdge, BreakLink, CrashNode, Age, LoseReply],
        )
    }
}

fn question() -> Setup {
    Setup {
        tool: Tool::Asks,
        ..Setup::hold(
            "a question",
            3,
            &[BreakEdge, BreakLink, CrashNode, Age, LoseReply],
        )
    }
}

fn writing() -> Setup {
    Setup {
        tool: Tool::Writes,
        ..Setup::hold(
            "a writing",
            3,
            &[BreakEdge, BreakLink, CrashNode, Age, LoseReply],
        )
    }
}

fn cancelled() -> Setup {
    Setup {
        tool: Tool::Endless,
        also: Also::Cancel,
        ..Setup::hold(
            "a cancellation",
            3,
            &[BreakEdge, BreakLink, CrashNode, Age, HangUp],
        )
    }
}

fn deleted() -> Setup {
    Setup {
        also: Also::Delete,
        ..Setup::hold(
            "the end of a session",
            2,
            &[BreakEdge, BreakLink, CrashNode, Age],
        )
    }
}

macro_rules! explorations {
    ($($name:ident,)*) => {
        mod holds {
            $(
                #[test]
                fn $name() {
                    super::holds(super::$name());
                }
            )*
        }

        mod ends {
            $(
                /// "Answered in the end" requires this property, see `model/properties.rs`.
                #[test]
                fn $name() {
                    let setup = super::Setup { mishaps: 2, ..super::$name() };
                    assert!(super::has_no_cycle(setup));
                }
            )*
        }

        mod holds_longer {
            $(
                #[test]
                #[ignore = "takes minutes"]
                fn $name() {
                    let setup = super::$name();
                    super::holds(super::Setup { mishaps: setup.mishaps + 1, ..setup });
                }
            )*
        }
    };
}

explorations! {
    short_call,
    three_owners,
    paused_owners,
    lost_workers,
    refusing_workers,
    planning,
    planning_and_refusing_workers,
    limits,
    evidence,
    asked_worker,
    store_away,
    stream,
    batch,
    single_stream,
    question,
    writing,
    cancelled,
    deleted,
}

macro_rules! planted {
    ($($name:ident: $fault:ident in $setup:expr => $($property:ident),+;)*) => {
        const PLANTED: &[(Fault, &[&str])] = &[$((Fault::$fault, &[$(must::$property),+])),*];

        mod planted {
            $(
                #[test]
                fn $name() {
                    $(super::breaks($setup.plant(super::Fault::$fault), super::must::$property);)+
                }
            )*
        }
    };
}

planted! {
    refusals_forgotten: RefusalsForgotten in super::refusing_workers() => AT_MOST_ONCE;
    a_resent_start_that_is_not_attached: ResentStartRuns in super::short_call() => AT_MOST_ONCE;
    numbers_ignored: NumbersIgnored in super::lost_workers() => AT_MOST_ONCE;
    two_clocks_compared: ClocksCompared in super::lost_workers() => AT_MOST_ONCE;
    a_blind_retry: BlindRetry in super::short_call() => AT_MOST_ONCE;
    moved_after_a_start: MovedAfterStart in super::moved() => AT_MOST_ONCE;
    a_final_refusal_passed_on: FinalRefusalPassedOn in super::limits() => NOT_EXECUTED;
    a_404_passed_on: FinalRefusalPassedOn in super::deleted() => NOT_EXECUTED;
    a_repetition_that_meets_a_limit: RepetitionsMeetLimits in super::limits() => KNOWN;
    a_call_that_is_not_there_yet: NotThereIsNotExecuted in super::asked_worker() => NOT_EXECUTED;
    a_step_that_ends_its_call: FailedStepEndsCall in super::short_call() => KNOWN;
    freed_with_the_answer: FreedWithAnswer in super::short_call() => FREED, KNOWN;
    a_member_acknowledged_early: FreedOnReceipt in super::batch() => FREED, KNOWN;
    a_binding_that_is_not_journaled: UnjournaledBinding in super::refusing_workers() => NOT_EXECUTED;
    a_late_first_delivery_bound_anew: LateFirstBoundAnew in super::refusing_workers() => AT_MOST_ONCE;
    a_repetition_bound_anew: RepetitionBoundAnew in super::refusing_workers() => AT_MOST_ONCE;
    a_refused_repetition_believed: RefusedRepetitionBelieved in super::planning() => NOT_EXECUTED;
    an_attachment_forgotten: AttachmentForgotten in super::planning() => NOT_EXECUTED;
    a_disagreement_that_starts_elsewhere: DisagreementStartsElsewhere in super::planning() => AT_MOST_ONCE;
    a_late_first_delivery_started_elsewhere: FirstStartsElsewhere in super::planning() => AT_MOST_ONCE;
    an_edge_that_binds_anew_after_sending: EdgeBindsAnewAfterSending in super::refusing_workers() => AT_MOST_ONCE;
    a_zombie_that_admits: ZombieAdmits in super::paused_owners() => CERTAIN;
    no_notes: NoNotes in super::evidence() => LEARNS;
    asking_once: AsksOnce in super::evidence() => LEARNS;
    asking_once_after_a_lapse: AsksOnce in super::paused_owners() => LEARNS;
    keeping_after_a_lapse: KeepsAfterLapse in super::paused_owners() => LEARNS;
    no_epoch_towards_workers: NoEpochTowardsWorkers in super::paused_owners() => FENCED;
    a_stolen_reader_as_an_outcome: StolenReaderIsOutcome in super::paused_owners() => KNOWN;
    a_lost_session_that_cancels: CancelOnLostSession in super::paused_owners() => ASKED_FOR;
    starts_after_the_end: StartsAfterEnd in super::deleted() => ENDED;
    an_answer_accepted_early: AnswerAcceptedEarly in super::question() => ANSWERED;
    an_answer_without_its_round: AnswerWithoutRound in super::question() => QUESTION;
    a_writing_inside_the_hold: UnjournaledWriting in super::writing() => WRITTEN;
    an_overtaking_cancel_forgotten: OvertakingCancelForgotten in super::cancelled() => CANCELS;
    a_cancelled_call_that_is_plainly_refused: CancelledIsPlain in super::cancelled() => ANSWERED;
    a_cancelled_repetition_that_starts: CancelledRepetitionStarts in super::cancelled() => NOT_STARTED;
    hearsay: Hearsay in super::evidence() => EVIDENCE;
    no_quiet_after_a_claim: NoQuietAfterClaim in super::evidence() => CLAIMS;
    a_blind_claim: BlindClaim in super::three_owners() => ONE_OWNER;
    no_epoch_check: NoEpochCheck in super::stream() => EPOCHS, WORKER_EVENTS;
    an_id_before_its_step: IdBeforeStep in super::short_call() => ID_IN_LOG;
    two_exits: TwoExits in super::short_call() => JSON_OR_STREAM, ONE_ANSWER;
    an_entry_left_open: EntryLeftOpen in super::store_away() => CLOSED;
    accepted_before_the_log: AcceptedBeforeLog in super::single_stream() => ID_IN_LOG, ANSWERED;
    no_look_into_the_log: NoLookUp in super::short_call() => KNOWN;
    no_look_at_the_one_stream: OneStreamUnread in super::single_stream() => KNOWN;
    a_freed_result_believed_lost: WorkerBelieved in super::short_call() => KNOWN;
    a_late_refusal_believed: WorkerBelieved in super::refusing_workers() => NOT_EXECUTED;
    a_dropped_delivery_forgotten: DroppedIsForgotten in super::cancelled() => CANCELS;
    a_dropped_delivery_that_cancels: DroppedIsCancelled in super::short_call() => ASKED_FOR;
    sent_before_it_is_appended: SentBeforeAppended in super::stream() => PREFIX;
    no_position_check: NoPositionCheck in super::stream() => WORKER_EVENTS;
    an_abandoned_append: AbandonedAppend in super::stream() => PREFIX;
    claims_for_deliveries_only: ClaimForDeliveriesOnly in super::stream() => ANSWERED;
}

fn moved() -> Setup {
    Setup {
        tool: Tool::Endless,
        also: Also::Cancel,
        ..Setup::hold("a move", 2, &[Age, Cut])
    }
}

fn table() -> String {
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    for (fault, broken) in PLANTED {
        let fault = format!("`{fault:?}`");
        for property in *broken {
            let at = rows.iter().position(|(known, _)| known == property);
            let at = at.unwrap_or_else(|| {
                rows.push((*property, Vec::new()));
                rows.len() - 1
            });
            let (_, faults) = &mut rows[at];
            if !faults.contains(&fault) {
                faults.push(fault.clone());
            }
        }
    }
    let row =
        |(promise, faults): (&str, Vec<String>)| format!("| {promise} | {} |\n", faults.join(", "));
    rows.into_iter().map(row).collect()
}

#[test]
fn the_documentation_lists_the_promises_and_their_faults() {
    let page = include_str!("model/README.md");
    let table = table();
    assert!(page.contains(&table), "model/README.md lacks:\n{table}");
}
