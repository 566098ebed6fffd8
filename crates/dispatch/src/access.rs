//! Applies the policy rules to a caller.
//!
//! Lists hide what a caller may not use, and a hidden item looks unknown.

mod items;

use std::cell::Cell;
use std::sync::Arc;

use shoal_policy::{Decision, KnownSubject, Policy, Subject, Target, TargetKind};
use shoal_ports::{Call, Caller, ClientInfo};
use shoal_protocol::RawJson;
use shoal_telemetry::audit::{self, Kind, keys};
use shoal_telemetry::metrics::{PolicyOutcome, metrics};
use shoal_telemetry::trace::{self, attributes};

use crate::config::Config;

pub(crate) struct Access(Option<SubjectPolicy>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayCall {
    No,
    Yes,
    OnceAgreed,
}

struct SubjectPolicy {
    policy: Arc<Policy>,
    subject: Arc<KnownSubject>,
    tells: Tells,
    /// The rule that allowed a planned call, for its audit event.
    allows: Option<Cell<Option<Arc<str>>>>,
}

enum Tells {
    Each,
    Denials,
}

type NamedTarget<'a> = (TargetKind, &'a str, &'a str, Option<&'a RawJson>);

impl Access {
    pub(crate) fn of(config: &Config, caller: &Caller) -> Self {
        let policy = config.policies.as_ref().map(|it| it.current());
        let Some(policy) = policy.filter(|policy| !policy.is_open()) else {
            return Self(None);
        };
        let subject = policy.subject(&subject_of(caller));
        let tells = Tells::Each;
        Self(Some(SubjectPolicy {
            policy,
            subject,
            tells,
            allows: None,
        }))
    }

    pub(crate) fn of_call(config: &Config, call: &Call) -> Self {
        let access = Self::of(config, &call.caller);
        Self(access.0.map(|asked| SubjectPolicy {
            allows: audit::keeps(Kind::Call).then(Cell::default),
            ..asked
        }))
    }

    pub(crate) fn has_rules(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn rule(&self) -> Option<Arc<str>> {
        self.0.as_ref()?.allows.as_ref()?.take()
    }

    /// Records only denials from now on, because the audit trail has the first decision.
    pub(crate) fn once_more(self) -> Self {
        let tells = Tells::Denials;
        Self(self.0.map(|asked| SubjectPolicy { tells, ..asked }))
    }

    /// Returns access for work that the rules have already allowed, or decide about later.
    pub(crate) fn granted() -> Self {
        Self(None)
    }

    pub(crate) fn subject(&self) -> Option<u64> {
        self.0.as_ref().map(|asked| asked.subject.number())
    }

    pub(crate) fn shows(
        &self,
        catalog: u64,
        kind: TargetKind,
        name: &str,
        pool: &str,
        item: &RawJson,
    ) -> bool {
        let Some(asked) = &self.0 else {
            return true;
        };
        let item = (kind == TargetKind::Tool).then_some(item);
        asked.decide((kind, name, pool, item), catalog).allowed
    }
}

impl SubjectPolicy {
    fn decide(&self, named: NamedTarget<'_>, catalog: u64) -> Decision {
        let decision = self.policy.decide(&self.subject, &target(named, catalog));
        if !decision.allowed {
            let (kind, name, ..) = named;
            let rule = self.policy.rule(decision).map(|name| &**name);
            tracing::trace!(
                kind = kind.as_str(),
                name,
                rule,
                "policy hides an item of a list"
            );
        }
        decision
    }

    fn told(&self, named: NamedTarget<'_>, decision: Decision) {
        if let Some(allows) = &self.allows {
            let rule = self.policy.rule(decision).filter(|_| decision.allowed);
            allows.set(rule.cloned());
        }
        let needs_no_event = self.allows.is_some() && decision.allowed && !decision.asks;
        match self.tells {
            Tells::Denials if decision.allowed => {}
            Tells::Each | Tells::Denials if needs_no_event => {
                metrics().policy.decided(PolicyOutcome::Allowed);
            }
            Tells::Each | Tells::Denials => self.record(named, decision),
        }
    }

    fn record(&self, (kind, name, pool, _): NamedTarget<'_>, decision: Decision) {
        let outcome = match (decision.allowed, decision.asks) {
            (true, false) => PolicyOutcome::Allowed,
            (true, true) => PolicyOutcome::Asked,
            (false, _) => PolicyOutcome::Denied,
        };
        metrics().policy.decided(outcome);
        audit::record(Kind::Policy, |event| {
            event.set(attributes::OUTCOME, outcome.as_str());
            event.set(keys::ENDUSER_ID, self.subject.principal());
            event.set_some(
                keys::POLICY_RULE,
                self.policy.rule(decision).map(|name| &**name),
            );
            event.set(
                match kind {
                    TargetKind::Tool => attributes::GEN_AI_TOOL_NAME,
                    TargetKind::Prompt => attributes::GEN_AI_PROMPT_NAME,
                    TargetKind::Resource => attributes::MCP_RESOURCE_URI,
                    TargetKind::ResourceTemplate => keys::RESOURCE_TEMPLATE,
                    TargetKind::Method => attributes::MCP_METHOD_NAME,
                },
                name,
            );
            event.set(attributes::POOL, pool);
            event.trace(trace::current().as_ref());
        });
        if !decision.allowed {
            let principal = self.subject.principal();
            tracing::debug!(
                principal,
                kind = kind.as_str(),
                name,
                pool,
                "policy denies a request"
            );
        }
    }
}

fn target((kind, name, pool, item): NamedTarget<'_>, catalog: u64) -> Target<'_> {
    Target {
        kind,
        name,
        pool,
        item,
        catalog,
    }
}

fn subject_of(caller: &Caller) -> Subject<'_> {
    let grant = caller.grant.as_deref();
    Subject {
        principal: caller.principal.as_str(),
        scopes: grant.map_or(&[], |grant| &grant.scopes),
        claims: grant.map(|grant| &grant.claims),
        client: caller.client_info.as_ref().map(ClientInfo::as_json),
        read: grant.map(|grant| &grant.read),
    }
}
