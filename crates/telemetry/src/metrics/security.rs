//! Who may call, and how often.

use super::area::{Label, area};
use super::definition::Attribute;
use super::known::{Known, NameKind};
use super::labels::{OUTCOME, Pair, label, labels};

const METHOD: &str = "shoal.auth.method";
const QUOTA: &str = "shoal.quota";

area! {
    /// Authentication and quotas.
    SecurityMetrics {
        /// The caller was asked for; `method` is a way to authenticate such as `bearer`, `jwt` or `anonymous`.
        pub authenticated: Counter [method: AuthMethod, outcome: AuthOutcome]
            = "shoal.auth.attempts", "{request}", "Requests whose caller had to authenticate.";
        /// A request was counted.
        pub quota: Counter [quota: Quota, outcome: QuotaOutcome]
            = "shoal.quota.checks", "{request}", "Requests that were counted against a quota.";
    }
}

labels! {
    /// What came out of asking who is calling.
    AuthOutcome: OUTCOME {
        /// The caller is known.
        Accepted = "accepted",
        /// No credentials came.
        Missing = "missing",
        /// The credentials are not valid.
        Invalid = "invalid",
    }
}

labels! {
    /// What a quota said.
    QuotaOutcome: OUTCOME {
        /// There is room.
        Allowed = "allowed",
        /// It is used up.
        Refused = "refused",
    }
}

/// A way to authenticate.
pub enum AuthMethod {}

impl Label for AuthMethod {
    type Given<'a> = &'static str;

    const ATTRIBUTE: Attribute =
        Attribute::code(METHOD, "the ways to authenticate that are built in");

    fn pair(given: &'static str) -> Pair {
        label(METHOD, given)
    }
}

/// A quota, by its name.
pub enum Quota {}

impl Label for Quota {
    type Given<'a> = &'a str;

    const ATTRIBUTE: Attribute = Attribute::configured(QUOTA, "the quotas");

    fn pair(given: &str) -> Pair {
        Known::label(NameKind::Quota, QUOTA, given)
    }
}
