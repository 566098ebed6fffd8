//! Decisions of policy rules.

use super::area::area;
use super::configuration::ReloadOutcome;
use super::labels::{OUTCOME, labels};

area! {
    /// Policy.
    PolicyMetrics {
        /// A request was allowed or denied.
        pub decided: Counter [outcome: PolicyOutcome]
            = "shoal.policy.decisions", "{request}", "Policy decisions on requests, without filtered lists.";
        /// A person was asked whether a tool may be called, and this came of it.
        pub approved: Counter [outcome: ApprovalOutcome]
            = "shoal.policy.approvals", "{question}", "Questions to users before a call.";
        /// A rule's condition could not be evaluated.
        pub failed: Counter []
            = "shoal.policy.failures", "{failure}", "Policy conditions that failed to evaluate; they fail closed.";
        /// The file with the rules was read again.
        pub reloaded: Counter [outcome: ReloadOutcome]
            = "shoal.policy.reloads", "{reload}", "Reads of a changed policy file.";
    }
}

labels! {
    /// The decision of the rules.
    PolicyOutcome: OUTCOME {
        /// Allowed.
        Allowed = "allowed",
        /// Denied.
        Denied = "denied",
        /// Allowed if a person agrees.
        Asked = "asked",
    }
}

labels! {
    /// The outcome of asking a person.
    ApprovalOutcome: OUTCOME {
        /// The person agreed.
        Accepted = "accepted",
        /// The person declined.
        Declined = "declined",
        /// The person did not choose, or the call was cancelled.
        Cancelled = "cancelled",
        /// No answer came in time.
        TimedOut = "timed_out",
        /// The client cannot ask a person, or answered with an error.
        Unable = "unable",
    }
}
