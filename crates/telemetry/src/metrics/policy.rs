use super::area::area;
use super::configuration::ReloadOutcome;
use super::labels::{OUTCOME, labels};

area! {
    /// The metrics of policy.
    PolicyMetrics {
        /// Counts a decision.
        pub decided: Counter [outcome: PolicyOutcome]
            = "shoal.policy.decisions", "{request}",
            "Decisions of the policy rules on requests. Filtered lists do not count.";
        /// Counts a question to a user before a call.
        pub approved: Counter [outcome: ApprovalOutcome]
            = "shoal.policy.approvals", "{question}", "Questions to users whether a tool may be called.";
        /// Counts a condition that failed to evaluate.
        pub failed: Counter []
            = "shoal.policy.failures", "{failure}",
            "Policy conditions that Shoal could not evaluate. Such conditions fail closed.";
        /// Counts a read of a changed policy file.
        pub reloaded: Counter [outcome: ReloadOutcome]
            = "shoal.policy.reloads", "{reload}", "Times that Shoal read a changed policy file.";
    }
}

labels! {
    /// The rules' decision about a request.
    PolicyOutcome: OUTCOME {
        /// The rules allow the request.
        Allowed = "allowed",
        /// The rules deny the request.
        Denied = "denied",
        /// The rules allow the request if a person agrees.
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
        /// The client cannot ask a person, or answered with an error.
        Unable = "unable",
    }
}
