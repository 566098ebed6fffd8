//! What one exploration covers: how much there is of everything, and which rule is broken on purpose.

/// The bounds of a model, and its planted fault.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// What the reports call it.
    pub(crate) name: &'static str,
    /// Session nodes. A node that crashed and comes back has a new id, so it is one more node here.
    pub(crate) nodes: u8,
    /// Workers.
    pub(crate) workers: u8,
    /// Requests of the one client, all of them not safe to repeat.
    pub(crate) requests: u8,
    /// How many things may go wrong in one run, of any kind and in any order.
    pub(crate) disturbances: u8,
    /// The rule that is broken on purpose.
    pub(crate) fault: Option<Fault>,
}

impl Setup {
    /// The smallest cluster in which a session can move.
    pub(crate) fn small(name: &'static str) -> Self {
        Self {
            name,
            nodes: 2,
            workers: 2,
            requests: 1,
            disturbances: 3,
            fault: None,
        }
    }

    /// The same cluster with one rule broken.
    pub(crate) fn broken(name: &'static str, fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::small(name)
        }
    }

    /// Whether this rule is broken.
    pub(crate) fn plants(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}

/// A rule of the protocol that can be broken on purpose: what the checker then finds is what the rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The reader gets a worker's event before the log has it.
    SendBeforeAppend,
    /// The store takes writes of any epoch.
    NoEpochCheck,
    /// A new owner, or one that lost its link, starts the call at another worker.
    BlindRetry,
    /// A worker executes a call it does not know, also one that it may have forgotten.
    NoHorizon,
    /// The store appends whatever the position is.
    NoPositionCheck,
    /// Nobody asks whether a delivery has begun a call already.
    NoDeliveryCheck,
    /// Only a delivery that is flagged as repeated is looked up, and in a step of its own before `begin`.
    CheckApartFromBegin,
    /// An owner that does not know whether its append was taken answers "outcome unknown" in its place.
    AbandonedAppend,
    /// A node that finds its lease lapsed, or contested, when it renews it goes on with the sessions that it had.
    KeepAfterLapse,
    /// A node that finds its lease lapsed asks once whether it still owns the session, and keeps it if so.
    AskAfterLapse,
    /// A delivery that finds its call only leads the client to the stream, though nobody may be driving it.
    FindOnly,
    /// Only a delivery brings a node to claim, a client that resumes does not.
    ClaimForDeliveriesOnly,
    /// An owner that does not know whether its begin was taken says "not executed" before it has taken
    /// the call back.
    RejectBeforeWithdrawal,
    /// The store gives the journal to whoever asks, also to a node that has lost the session already.
    UnfencedJournal,
    /// A claim sets owner and epoch without comparing them with what it has read.
    BlindClaim,
}
