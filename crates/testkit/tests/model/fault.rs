//! The protocol rules that can be broken on purpose. Each counterexample shows the purpose of a rule.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    // Binding.
    /// A worker does not remember which calls it refused.
    RefusalsForgotten,
    /// A worker runs a call again when an owner repeats the start.
    ResentStartRuns,
    /// A worker runs an unknown call with an older number than its own, although the worker may have
    /// forgotten the call.
    NumbersIgnored,
    /// A worker decides by clocks whether it has forgotten a call: it compares the time in the
    /// call's id, by the edge's clock, with a time by its own clock.
    ClocksCompared,
    /// An owner sends a delivery back as unsent although it has started the call.
    MovedAfterStart,
    /// The edge passes the refusal of a repetition on as final.
    FinalRefusalPassedOn,
    /// Limits for new calls apply to repetitions.
    RepetitionsMeetLimits,
    /// An edge reports a call as not executed because a worker does not know the call.
    NotThereIsNotExecuted,
    /// An owner that sends JSON frees the result before the edge has confirmed it.
    FreedWithAnswer,
    /// An owner frees each result on receipt, before the result is in the log or at the edge.
    FreedOnReceipt,
    /// An owner binds a call to another worker without journaling the new binding.
    UnjournaledBinding,
    /// An owner that cannot reach the bound worker binds a repetition again.
    RepetitionBoundAnew,
    /// If a delivery claims to be the first, an owner that cannot reach the bound worker binds the call again.
    LateFirstBoundAnew,
    /// An owner whose plan refuses a repetition refuses it without asking the worker.
    RefusedRepetitionBelieved,
    /// A worker that is asked for an unknown call does not remember its refusal.
    AttachmentForgotten,
    /// An owner whose catalog disagrees with the edge's starts a repetition at a worker of its own choice.
    DisagreementStartsElsewhere,
    /// If a delivery claims to be the first, an owner whose catalog disagrees with the edge's starts the call at a
    /// worker of its own choice.
    FirstStartsElsewhere,
    /// The edge binds a call again after it may have been sent to a worker.
    EdgeBindsAnewAfterSending,
    /// A former owner, or an owner that lost its link, starts the call at another worker.
    BlindRetry,

    // Two owners.
    /// A node accepts calls although its lease is not certain.
    ZombieAdmits,
    /// A claim leaves no note, so the owner does not check its ownership again.
    NoNotes,
    /// A node that doubts its ownership checks the owner only once.
    AsksOnce,
    /// A node keeps its sessions after its lease has lapsed.
    KeepsAfterLapse,
    /// Workers accept frames from owners of any epoch.
    NoEpochTowardsWorkers,
    /// Workers accept frames of any epoch. A driver whose reader is replaced assumes that the call
    /// has ended.
    StolenReaderIsOutcome,
    /// A node that loses a session cancels its call.
    CancelOnLostSession,
    /// A worker that knows of a session's end starts calls for it.
    StartsAfterEnd,
    /// An owner accepts the client's answer to a question before the worker has it.
    AnswerAcceptedEarly,
    /// The client's answer to a question does not name the round of questions that it answers.
    AnswerWithoutRound,
    /// A write to the session state does not end the hold.
    UnjournaledWriting,
    /// A node drops a cancellation that arrives before its call.
    OvertakingCancelForgotten,
    /// A worker that refuses a cancelled call forgets the cancellation.
    CancelledIsPlain,
    /// A repetition of a cancelled call starts the call.
    CancelledRepetitionStarts,
    /// A node claims a session because an edge has lost its owner.
    Hearsay,
    /// A session can be claimed on evidence without a pause between claims.
    NoQuietAfterClaim,
    /// A claim sets owner and epoch without comparing them with those that it has read.
    BlindClaim,
    /// The store accepts writes of any epoch.
    NoEpochCheck,

    // Hold.
    /// The client gets an event id before the journal has confirmed the entry.
    IdBeforeStep,
    /// An unconfirmed step of the journal ends the call.
    FailedStepEndsCall,
    /// A result is sent as JSON although the call has already become a stream.
    TwoExits,
    /// A journal entry that may exist stays open when the answer is sent as JSON.
    EntryLeftOpen,
    /// 202 is sent before the log has an event.
    AcceptedBeforeLog,
    /// Over HTTP+SSE, an owner does not look for a repeated call on the standalone stream.
    OneStreamUnread,
    /// An owner does not look in the log for repetitions, or for calls that the worker has
    /// forgotten.
    NoLookUp,
    /// An owner believes a worker that refuses or has forgotten the call, without looking in the
    /// log.
    WorkerBelieved,
    /// An owner forgets the call of a delivery whose edge is gone.
    DroppedIsForgotten,
    /// An owner cancels the call of a delivery whose edge is gone.
    DroppedIsCancelled,

    // Log.
    /// The reader gets a worker's event before the log has it.
    SentBeforeAppended,
    /// The store appends without checking the position.
    NoPositionCheck,
    /// An owner does not repeat an unconfirmed append, but answers "outcome unknown".
    AbandonedAppend,
    /// A node claims only for deliveries, not for resuming clients.
    ClaimForDeliveriesOnly,
}

impl Fault {
    pub(crate) fn rule(self) -> &'static str {
        match self {
            Self::RefusalsForgotten
            | Self::ResentStartRuns
            | Self::NumbersIgnored
            | Self::ClocksCompared
            | Self::BlindRetry => {
                "a worker knows what it took and what it refused, by its own numbers"
            }
            Self::MovedAfterStart => "`Moved` means that the request was not passed on",
            Self::FinalRefusalPassedOn => "only the worker's word is \"not executed\"",
            Self::RepetitionsMeetLimits => "repetitions pass limits",
            Self::NotThereIsNotExecuted => "an edge asks a worker for a result only",
            Self::FailedStepEndsCall => "a step that fails leaves the hold open",
            Self::FreedWithAnswer => "a result is freed where the answer is safe",
            Self::FreedOnReceipt => {
                "no member of a batch is acknowledged before its answer is safe"
            }
            Self::UnjournaledBinding => "a second binding is journaled before its start",
            Self::RepetitionBoundAnew => "a repetition waits for its worker",
            Self::LateFirstBoundAnew => {
                "only its edge binds a call anew, and only before it was sent"
            }
            Self::RefusedRepetitionBelieved => {
                "a plan that refuses a repetition counts once the worker has refused the call"
            }
            Self::AttachmentForgotten => "what a worker was only asked for, it refuses for good",
            Self::DisagreementStartsElsewhere | Self::FirstStartsElsewhere => {
                "an owner whose plan disagrees with the binding starts nothing"
            }
            Self::EdgeBindsAnewAfterSending => {
                "an edge binds a call again only if all deliveries came back as unsent"
            }
            Self::CancelledIsPlain => "a refusal that is remembered keeps its reason",
            Self::ZombieAdmits | Self::NoNotes | Self::AsksOnce | Self::KeepsAfterLapse => {
                "no zombies"
            }
            Self::NoEpochTowardsWorkers => "frames to workers carry the epoch",
            Self::StolenReaderIsOutcome => "superseded is no outcome",
            Self::CancelOnLostSession => {
                "losing a session detaches its calls without cancelling them"
            }
            Self::StartsAfterEnd => "a worker refuses later starts of a session that has ended",
            Self::AnswerAcceptedEarly => "the 202 of an answer follows the worker's word",
            Self::AnswerWithoutRound => "an answer names its round",
            Self::UnjournaledWriting => "a call's first writing ends the hold",
            Self::OvertakingCancelForgotten => "a cancellation that overtakes is remembered",
            Self::CancelledRepetitionStarts => "a cancelled repetition is attached without a start",
            Self::Hearsay => "evidence is the claimer's own",
            Self::NoQuietAfterClaim => "no claim on evidence within a lease of the last claim",
            Self::BlindClaim | Self::NoEpochCheck => "the epoch is the fence",
            Self::IdBeforeStep => "the id only after the step is confirmed",
            Self::TwoExits => "one exit of the hold",
            Self::EntryLeftOpen => "an entry that may be there is closed later",
            Self::AcceptedBeforeLog => "202 only once something is in the log",
            Self::OneStreamUnread => "the one stream of HTTP+SSE is looked at for a repetition",
            Self::WorkerBelieved => "what a worker has freed or refused may be in the log",
            Self::NoLookUp => "a repetition is looked up in memory, log, worker",
            Self::DroppedIsForgotten | Self::DroppedIsCancelled => {
                "a dropped delivery stays in its owner's table"
            }
            Self::SentBeforeAppended => "every event is appended before it is sent",
            Self::NoPositionCheck | Self::AbandonedAppend => {
                "an append is repeated as it was, and counts once"
            }
            Self::ClaimForDeliveriesOnly => "whoever resumes brings a node to claim",
        }
    }
}
