use shoal_policy::{Decision, TargetKind};

use super::{Access, MayCall, NamedTarget, SubjectPolicy, target};
use crate::catalog::{Catalog, OfferedTool, Readings};

impl Access {
    pub(crate) fn tool(&self, catalog: &Catalog, name: &str, offered: &OfferedTool) -> MayCall {
        let Some(policy) = &self.0 else {
            return MayCall::Yes;
        };
        let item = Some(&offered.tool.raw);
        let named = (TargetKind::Tool, name, &*offered.pool, item);
        let decision = policy.decide(named, catalog.number());
        policy.told(named, decision);
        match (decision.allowed, decision.asks) {
            (false, _) => MayCall::No,
            (true, false) => MayCall::Yes,
            (true, true) => MayCall::OnceAgreed,
        }
    }

    pub(crate) fn shows_tool(&self, catalog: &Catalog, name: &str, offered: &OfferedTool) -> bool {
        let number = catalog.number();
        self.shows(
            number,
            TargetKind::Tool,
            name,
            &offered.pool,
            &offered.tool.raw,
        )
    }

    pub(crate) fn prompt(&self, catalog: &Catalog, name: &str, pool: &str) -> bool {
        self.answer((TargetKind::Prompt, name, pool, None), catalog)
    }

    pub(crate) fn method(&self, catalog: &Catalog, method: &str, pool: &str) -> bool {
        self.answer((TargetKind::Method, method, pool, None), catalog)
    }

    pub(crate) fn template(&self, catalog: &Catalog, template: &str, pool: &str) -> bool {
        self.answer(
            (TargetKind::ResourceTemplate, template, pool, None),
            catalog,
        )
    }

    /// A URI that the backend does not list must be allowed in every spelling that a server may read, and denied in
    /// none.
    pub(crate) fn resource(&self, catalog: &Catalog, uri: &str, pool: &str) -> bool {
        let Some(policy) = &self.0 else {
            return true;
        };
        let named = (TargetKind::Resource, uri, pool, None);
        if catalog.is_listed(uri) {
            return self.answer(named, catalog);
        }
        let mut decision = policy.decide(named, catalog.number());
        if decision.allowed
            && let Some(against) = policy.against_other_readings(uri, pool, catalog)
        {
            decision = against;
        }
        policy.told(named, decision);
        decision.allowed
    }

    fn answer(&self, named: NamedTarget<'_>, catalog: &Catalog) -> bool {
        let Some(policy) = &self.0 else {
            return true;
        };
        let decision = policy.decide(named, catalog.number());
        policy.told(named, decision);
        decision.allowed
    }
}

impl SubjectPolicy {
    /// Finds a denial under another spelling that a server may read.
    fn against_other_readings(&self, uri: &str, pool: &str, catalog: &Catalog) -> Option<Decision> {
        let decide = |uri: &str| {
            let named = (TargetKind::Resource, uri, pool, None);
            self.policy
                .decide(&self.subject, &target(named, catalog.number()))
        };
        let Some(Readings { whole, loose }) = Catalog::readings(uri) else {
            return Some(Decision::NO_RULE_ALLOWS);
        };
        let mut whole = whole.iter().map(|uri| decide(uri));
        let mut loose = loose.iter().map(|uri| decide(uri));
        let denied = |decision: &Decision| !decision.allowed;
        let by_a_rule =
            |decision: &Decision| denied(decision) && self.policy.rule(*decision).is_some();
        whole.find(denied).or_else(|| loose.find(by_a_rule))
    }
}
