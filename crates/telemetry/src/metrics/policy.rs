//! Decisions of policy rules.

use super::area::area;
use super::configuration::ReloadOutcome;
use super::labels::{OUTCOME, labels};

area! {
    /// The metrics of policy.
    PolicyMetrics {
        /// Counts a decision.
        pub decided: Counter [outcome: PolicyOutcome]
            = "shoal.policy.decisions", "{request}", "Policy decisions on requests, without filtered lists.";
        /// Counts a question to a user before a call.
        pub approved: Counter [outcome: ApprovalOutcome]
            = "shoal.policy.approvals", "{question}", "Questions to users before a call.";
        /// Counts a condition that failed to evaluate.
        pub failed: Counter []
            = "shoal.policy.failures", "{failure}", "Policy conditions that failed to evaluate; they fail closed.";
        /// Counts a read of a changed policy file.
        pub reloaded: Counter [outcome: ReloadOutcome]
            = "shoal.policy.reloads", "{reload}", "Reads of a changed policy file.";
    }
}

labels! {
    /// What the rules decided about a request.
    PolicyOutcome: OUTCOME {
        /// Allowed.
        Allowed = "allowed",
        /// Denied.
        Denied = "denied",
        /// Allowed if the user agrees.
        Asked = "asked",
    }
}

labels! {
    /// The outcome of asking the user.
    ApprovalOutcome: OUTCOME {
        /// The user agreed.
        Accepted = "accepted",
        /// The user declined.
        Declined = "declined",
        /// The user did not choose, or the call was cancelled.
        Cancelled = "cancelled",
        /// No answer came in time.
        TimedOut = "timed_out",
        /// The client cannot ask the user, or answered with an error.
        Unable = "unable",
    }
}
