//! Decisions of policy rules.

use super::area::area;
use super::configuration::ReloadOutcome;
use super::labels::{OUTCOME, labels};

area! {
    /// Policy.
    PolicyMetrics {
        /// A request was allowed or denied.
        pub decided: Counter [outcome: PolicyOutcome]
            = "shoal.policy.decisions", "{request}", "Requests that policy rules were asked about. Filtered lists are not counted.";
        /// A person was asked whether a tool may be called, and this came of it.
        pub approved: Counter [outcome: ApprovalOutcome]
            = "shoal.policy.approvals", "{question}", "Calls that a person was to agree to, by what came of that.";
        /// A rule's condition could not be evaluated.
        pub failed: Counter []
            = "shoal.policy.failures", "{failure}", "Conditions of policy rules that could not be evaluated. Such a rule opens nothing.";
        /// The file with the rules was read again.
        pub reloaded: Counter [outcome: ReloadOutcome]
            = "shoal.policy.reloads", "{reload}", "Changes of the file with the policy rules that were read.";
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
