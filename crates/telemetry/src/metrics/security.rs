use super::area::{Label, area};
use super::definition::Attribute;
use super::known::{Known, NameKind};
use super::labels::{KIND, OUTCOME, Pair, REASON, label, labels};

const METHOD: &str = "shoal.auth.method";
const QUOTA: &str = "shoal.quota";

area! {
    /// The metrics of authentication and quotas.
    SecurityMetrics {
        /// Counts a request that needed authentication. `method` is for example `bearer`, `oauth` or `anonymous`.
        pub authenticated: Counter [method: AuthMethod, outcome: AuthOutcome, reason: AuthReason]
            = "shoal.auth.attempts", "{request}", "Requests that needed authentication.";
        /// Counts a request to an authorization server.
        pub asked_server: Counter [kind: AuthServerRequest, outcome: AuthServerOutcome]
            = "shoal.auth.server.requests", "{request}", "Requests to authorization servers.";
        /// Counts a request against a quota.
        pub quota: Counter [quota: Quota, outcome: QuotaOutcome]
            = "shoal.quota.checks", "{request}", "Requests counted against a quota.";
        /// Counts a part of a quota taken from the store or returned.
        pub quota_lease: Counter [quota: Quota, outcome: QuotaLeaseOutcome]
            = "shoal.quota.leases", "{lease}",
            "Parts of a quota that an edge requests from the store, or returns.";
    }
}

labels! {
    /// The outcome of authentication.
    AuthOutcome: OUTCOME {
        /// Accepted.
        Accepted = "accepted",
        /// No credentials.
        Missing = "missing",
        /// Invalid.
        Invalid = "invalid",
        /// Valid, without a needed scope.
        Insufficient = "insufficient",
        /// Could not be checked.
        Unavailable = "unavailable",
    }
}

labels! {
    /// A request to an authorization server.
    AuthServerRequest: KIND {
        /// Metadata.
        Metadata = "metadata",
        /// Keys.
        Keys = "keys",
        /// Introspection.
        Introspection = "introspection",
    }
}

labels! {
    /// How a request to an authorization server ended.
    AuthServerOutcome: OUTCOME {
        /// Answered.
        Answered = "answered",
        /// No usable answer.
        Failed = "failed",
    }
}

/// Why credentials were refused.
pub enum AuthReason {}

impl Label for AuthReason {
    type Given<'a> = &'static str;

    const ATTRIBUTE: Attribute = Attribute::code(REASON, "fault of the credentials, or `none`");

    fn pair(given: &'static str) -> Pair {
        label(REASON, given)
    }
}

labels! {
    /// The decision of a quota.
    QuotaOutcome: OUTCOME {
        /// Allowed.
        Allowed = "allowed",
        /// Refused.
        Refused = "refused",
    }
}

labels! {
    /// How a request to the store for more of a quota ended.
    QuotaLeaseOutcome: OUTCOME {
        /// Taken.
        Taken = "taken",
        /// Quota used up.
        Empty = "empty",
        /// Store unreachable: the edge uses its own share.
        Local = "local",
        /// Part that the edge did not use.
        Returned = "returned",
    }
}

/// A way to authenticate.
pub enum AuthMethod {}

impl Label for AuthMethod {
    type Given<'a> = &'static str;

    const ATTRIBUTE: Attribute =
        Attribute::code(METHOD, "such as `bearer`, `oauth` or `anonymous`");

    fn pair(given: &'static str) -> Pair {
        label(METHOD, given)
    }
}

/// A quota's name.
pub enum Quota {}

impl Label for Quota {
    type Given<'a> = &'a str;

    const ATTRIBUTE: Attribute = Attribute::configured(QUOTA, "the quotas");

    fn pair(given: &str) -> Pair {
        Known::label(NameKind::Quota, QUOTA, given)
    }
}
