//! The rules of the protocol that can be broken on purpose: what the checker then finds is what a rule is for.

/// A broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    // Binding.
    /// A worker does not remember what it refused.
    RefusalsForgotten,
    /// A start of a known call that does not say that it is repeated runs it again.
    ResentStartRuns,
    /// A worker runs what it does not know, whatever number it was bound under.
    NumbersIgnored,
    /// A worker compares the time of the call's id, by the edge's clock, with the time up to which it has forgotten, by its own.
    ClocksCompared,
    /// A delivery is sent on as if nothing had left though its call was started.
    MovedAfterStart,
    /// The edge passes a refusal of a repetition on as final.
    FinalRefusalPassedOn,
    /// A repetition is refused by the limits that are for new calls.
    RepetitionsMeetLimits,
    /// An edge that asks the worker itself takes a call that is not there for one that is not executed.
    NotThereIsNotExecuted,
    /// An owner that sends JSON frees the result, whether the edge has it or not.
    FreedWithAnswer,
    /// A result, or that of a batch's member, is freed when the owner has it, before the log or the edge does.
    FreedOnReceipt,
    /// An owner binds a call to another worker without journaling it.
    UnjournaledBinding,
    /// An owner that cannot reach the bound worker binds a repetition anew.
    RepetitionBoundAnew,
    /// An owner that cannot reach the bound worker binds a call anew whose delivery calls itself the first.
    LateFirstBoundAnew,
    /// A former owner, or one that lost its link, starts the call at another worker.
    BlindRetry,

    // Two owners.
    /// A node admits calls though its lease is not certain.
    ZombieAdmits,
    /// A claim leaves no note.
    NoNotes,
    /// A node that has doubts asks once.
    AsksOnce,
    /// A node whose lease has lapsed goes on with what it had.
    KeepsAfterLapse,
    /// Workers take frames of any epoch.
    NoEpochTowardsWorkers,
    /// The same, and a driver whose reader was replaced takes that for the call's end.
    StolenReaderIsOutcome,
    /// A node that loses a session cancels its call.
    CancelOnLostSession,
    /// A worker that was told of a session's end takes starts for it.
    StartsAfterEnd,
    /// The client's answer to a question is accepted before the worker has it.
    AnswerAcceptedEarly,
    /// An answer does not name its round.
    AnswerWithoutRound,
    /// A writing to the session's state does not end the hold.
    UnjournaledWriting,
    /// A cancellation of a call that is not there is dropped.
    OvertakingCancelForgotten,
    /// A worker that has refused a call since it is to be cancelled remembers that as any refusal.
    CancelledIsPlain,
    /// A repetition of a call that is to be cancelled starts it.
    CancelledRepetitionStarts,
    /// A node claims because an edge has lost the owner.
    Hearsay,
    /// A session is claimed on evidence as often as there is some.
    NoQuietAfterClaim,
    /// A claim sets owner and epoch without comparing them with what it has read.
    BlindClaim,
    /// The store takes writes of any epoch.
    NoEpochCheck,

    // Hold.
    /// The client gets its id before the journal has confirmed the step.
    IdBeforeStep,
    /// A step of the journal that is not confirmed ends the call.
    FailedStepEndsCall,
    /// A result goes as JSON also when the call has become a stream.
    TwoExits,
    /// An entry that may be there when the answer goes as JSON is left open.
    EntryLeftOpen,
    /// 202 before anything is in the log.
    AcceptedBeforeLog,
    /// Over HTTP+SSE, a repetition whose call has ended is not looked for on the standalone stream.
    OneStreamUnread,
    /// Nothing is looked up in the log: no repetition, and no call that its worker cannot tell of any more.
    NoLookUp,
    /// A worker's refusal, or that it cannot tell any more, is believed without a look into the log.
    WorkerBelieved,
    /// A delivery whose edge is gone is forgotten.
    DroppedIsForgotten,
    /// A delivery whose edge is gone cancels its call.
    DroppedIsCancelled,

    // Log.
    /// The reader gets a worker's event before the log has it.
    SentBeforeAppended,
    /// The store appends whatever the position is.
    NoPositionCheck,
    /// An owner that does not know whether its append was taken answers "outcome unknown" in its place.
    AbandonedAppend,
    /// Only a delivery brings a node to claim, a client that resumes does not.
    ClaimForDeliveriesOnly,
}

impl Fault {
    /// The rule of the call protocol that it breaks.
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
