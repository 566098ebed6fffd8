use super::area::area;
use super::configuration::ReloadOutcome;
use super::labels::{OUTCOME, labels};

area! {
    /// The metrics of policy.
    PolicyMetrics {
        /// Counts a decision.
        pub decided: Counter [outcome: PolicyOutcome]
            = "shoal.policy.decisions", "{request}",
            "Decisions of the policy rules, except those that filter lists.";
        /// Counts a question to a user before a call.
        pub approved: Counter [outcome: ApprovalOutcome]
            = "shoal.policy.approvals", "{question}", "Questions to users before a call.";
        /// Counts a condition that failed to evaluate.
        pub failed: Counter []
            = "shoal.policy.failures", "{failure}",
            "Policy conditions that Shoal could not evaluate.";
        /// Counts a read of a policy file whose text has changed.
        pub reloaded: Counter [outcome: ReloadOutcome]
            = "shoal.policy.reloads", "{reload}", "Reads of a policy file whose text has changed.";
    }
}

labels! {
    /// The rules' decision about a request.
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
    /// The outcome of asking the user.
    ApprovalOutcome: OUTCOME {
        /// Accepted.
        Accepted = "accepted",
        /// Declined.
        Declined = "declined",
        /// No choice, or call cancelled.
        Cancelled = "cancelled",
        /// Timed out.
        TimedOut = "timed_out",
        /// The client cannot ask, or fails.
        Unable = "unable",
    }
}
