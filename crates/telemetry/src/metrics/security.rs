//! Authentication and quotas.

use super::area::{Label, area};
use super::definition::Attribute;
use super::known::{Known, NameKind};
use super::labels::{KIND, OUTCOME, Pair, REASON, label, labels};

const METHOD: &str = "shoal.auth.method";
const QUOTA: &str = "shoal.quota";

area! {
    /// The metrics of authentication and quotas.
    SecurityMetrics {
        /// Counts a request that needed authentication. `method` is for example `bearer`, `oauth` or
        /// `anonymous`.
        pub authenticated: Counter [method: AuthMethod, outcome: AuthOutcome, reason: AuthReason]
            = "shoal.auth.attempts", "{request}", "Requests that needed authentication.";
        /// Counts a request to an authorization server.
        pub asked_server: Counter [kind: AuthServerRequest, outcome: AuthServerOutcome]
            = "shoal.auth.server.requests", "{request}", "Requests to authorization servers.";
        /// Counts a request against a quota.
        pub quota: Counter [quota: Quota, outcome: QuotaOutcome]
            = "shoal.quota.checks", "{request}", "Requests counted against a quota.";
        /// Counts a part of a quota that an edge took from the store or returned.
        pub quota_lease: Counter [quota: Quota, outcome: QuotaLeaseOutcome]
            = "shoal.quota.leases", "{lease}", "Parts of a quota that an edge took from the store or returned.";
    }
}

labels! {
    /// The outcome of authentication.
    AuthOutcome: OUTCOME {
        /// The caller is known.
        Accepted = "accepted",
        /// The request had no credentials.
        Missing = "missing",
        /// The credentials were invalid.
        Invalid = "invalid",
        /// The credentials were valid but do not suffice for the request.
        Insufficient = "insufficient",
        /// The authenticator is unavailable.
        Unavailable = "unavailable",
    }
}

labels! {
    /// A request to an authorization server.
    AuthServerRequest: KIND {
        /// A request for the server's metadata.
        Metadata = "metadata",
        /// A request for the keys with which the server signs.
        Keys = "keys",
        /// A request for information about a token.
        Introspection = "introspection",
    }
}

labels! {
    /// How a request to an authorization server ended.
    AuthServerOutcome: OUTCOME {
        /// The server answered.
        Answered = "answered",
        /// The server did not answer, or its answer was wrong.
        Failed = "failed",
    }
}

/// Why credentials were refused.
pub enum AuthReason {}

impl Label for AuthReason {
    type Given<'a> = &'static str;

    const ATTRIBUTE: Attribute = Attribute::code(REASON, "the fault of the credentials, or `none`");

    fn pair(given: &'static str) -> Pair {
        label(REASON, given)
    }
}

labels! {
    /// The decision of a quota.
    QuotaOutcome: OUTCOME {
        /// The quota has room.
        Allowed = "allowed",
        /// The quota is used up.
        Refused = "refused",
    }
}

labels! {
    /// How a request to the store for more of a quota ended.
    QuotaLeaseOutcome: OUTCOME {
        /// The store granted a part.
        Taken = "taken",
        /// The quota is used up.
        Empty = "empty",
        /// The store is unreachable, and the edge counts its own share.
        Local = "local",
        /// The edge returned the unused part.
        Returned = "returned",
    }
}

/// A way to authenticate.
pub enum AuthMethod {}

impl Label for AuthMethod {
    type Given<'a> = &'static str;

    const ATTRIBUTE: Attribute = Attribute::code(METHOD, "built-in methods");

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
