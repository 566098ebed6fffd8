//! Who may call, and how often.

use super::definition::{Attribute, Kind, definitions};
use super::instrument::{Counter, Factory};
use super::known::{Known, NameKind};
use super::labels::{OUTCOME, label, labels};

const METHOD: &str = "shoal.auth.method";
const QUOTA: &str = "shoal.quota";

definitions! {
    AUTH = Kind::Counter, "shoal.auth.attempts", "{request}",
        "Requests whose caller was asked for.",
        [
            Attribute::code(METHOD, "the ways to authenticate that are built in"),
            Attribute::one_of(OUTCOME, AuthOutcome::VALUES),
        ];
    CHECKS = Kind::Counter, "shoal.quota.checks", "{request}",
        "Requests that were counted against a quota.",
        [
            Attribute::configured(QUOTA, "the quotas"),
            Attribute::one_of(OUTCOME, QuotaOutcome::VALUES),
        ];
}

labels! {
    /// What came out of asking who is calling.
    AuthOutcome {
        /// The caller is known.
        Accepted = "accepted",
        /// No credentials came.
        Missing = "missing",
        /// The credentials are not valid.
        Invalid = "invalid",
        /// They were valid once.
        Expired = "expired",
        /// The caller is known, and may not do this.
        Forbidden = "forbidden",
        /// Nobody could be asked.
        Unavailable = "unavailable",
    }
}

labels! {
    /// What a quota said.
    QuotaOutcome {
        /// There is room.
        Allowed = "allowed",
        /// It is used up.
        Refused = "refused",
        /// It could not be counted, and the request went on.
        Uncounted = "uncounted",
    }
}

/// Authentication and quotas.
#[derive(Debug)]
pub struct SecurityMetrics {
    attempts: Counter,
    checks: Counter,
    known: Known,
}

impl SecurityMetrics {
    pub(super) fn new(factory: &Factory, known: &Known) -> Self {
        Self {
            attempts: factory.counter(&AUTH),
            checks: factory.counter(&CHECKS),
            known: known.clone(),
        }
    }

    /// The caller was asked for; `method` is a way to authenticate such as `bearer`, `jwt` or `anonymous`.
    pub fn authenticated(&self, method: &'static str, outcome: AuthOutcome) {
        self.attempts.add(1, || {
            [label(METHOD, method), label(OUTCOME, outcome.as_str())]
        });
    }

    /// A request was counted.
    pub fn quota(&self, quota: &str, outcome: QuotaOutcome) {
        self.checks.add(1, || {
            [
                self.known.label(NameKind::Quota, QUOTA, quota),
                label(OUTCOME, outcome.as_str()),
            ]
        });
    }
}
