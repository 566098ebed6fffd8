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
            = "shoal.auth.server.requests", "{request}", "Requests that Shoal sent to authorization servers.";
        /// Counts a request against a quota.
        pub quota: Counter [quota: Quota, outcome: QuotaOutcome]
            = "shoal.quota.checks", "{request}", "Requests that Shoal counted against a quota.";
        /// Counts a part of a quota taken from the store or returned.
        pub quota_lease: Counter [quota: Quota, outcome: QuotaLeaseOutcome]
            = "shoal.quota.leases", "{lease}",
            "Requests of an edge to the store for a part of a quota, and returned parts.";
    }
}

labels! {
    /// The outcome of authentication.
    AuthOutcome: OUTCOME {
        /// Shoal knows the caller.
        Accepted = "accepted",
        /// The request had no credentials.
        Missing = "missing",
        /// The credentials are invalid.
        Invalid = "invalid",
        /// The credentials are valid, but do not suffice for the request.
        Insufficient = "insufficient",
        /// Shoal could not check the credentials.
        Unavailable = "unavailable",
    }
}

labels! {
    /// A request to an authorization server.
    AuthServerRequest: KIND {
        /// Shoal fetched the server's metadata.
        Metadata = "metadata",
        /// Shoal fetched the keys that sign tokens.
        Keys = "keys",
        /// Shoal asked about a token.
        Introspection = "introspection",
    }
}

labels! {
    /// How a request to an authorization server ended.
    AuthServerOutcome: OUTCOME {
        /// The server answered.
        Answered = "answered",
        /// The server did not answer, or its answer was unusable.
        Failed = "failed",
    }
}

/// Why credentials were refused.
pub enum AuthReason {}

impl Label for AuthReason {
    type Given<'a> = &'static str;

    const ATTRIBUTE: Attribute =
        Attribute::code(REASON, "what is wrong with the credentials, or `none`");

    fn pair(given: &'static str) -> Pair {
        label(REASON, given)
    }
}

labels! {
    /// The decision of a quota.
    QuotaOutcome: OUTCOME {
        /// The quota had room for the request.
        Allowed = "allowed",
        /// The quota is used up.
        Refused = "refused",
    }
}

labels! {
    /// How a request to the store for more of a quota ended.
    QuotaLeaseOutcome: OUTCOME {
        /// The edge took a part of the quota from the store.
        Taken = "taken",
        /// The quota is used up, so the edge got no part.
        Empty = "empty",
        /// The store is unreachable, so the edge counts within its own share.
        Local = "local",
        /// The edge returned a part that it did not use.
        Returned = "returned",
    }
}

/// A way to authenticate.
pub enum AuthMethod {}

impl Label for AuthMethod {
    type Given<'a> = &'static str;

    const ATTRIBUTE: Attribute = Attribute::code(
        METHOD,
        "how Shoal authenticates, such as `bearer`, `oauth` or `anonymous`",
    );

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
