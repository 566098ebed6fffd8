//! Cases that rules must pass.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use shoal_protocol::RawJson;

use crate::config::Rule;
use crate::policy::Policy;
use crate::subject::Subject;
use crate::target::{Target, TargetKind};

/// A file with cases.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table with [[cases]]")]
pub struct Cases {
    /// Rules to test, where they are not those of a configuration.
    pub rules: Vec<Rule>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// Who asks for what, and what must come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with subject, target and expect"
)]
pub struct Case {
    /// What the report calls it; else what it says.
    pub name: Option<String>,
    /// Who asks.
    #[serde(default)]
    pub subject: CaseSubject,
    /// What for.
    pub target: CaseTarget,
    /// What must come of it.
    pub expect: Expected,
    /// The rule that must decide; `""` stands for none.
    pub rule: Option<String>,
}

/// Who asks.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct CaseSubject {
    /// The principal.
    pub principal: String,
    /// What was granted to it.
    pub scopes: Vec<Arc<str>>,
    /// The claims of its token.
    pub claims: Map<String, Value>,
    /// Its client: `{ name = "…", version = "…" }`.
    pub client: Map<String, Value>,
}

/// The target of a case: one of the five.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct CaseTarget {
    /// A tool.
    pub tool: Option<String>,
    /// A prompt.
    pub prompt: Option<String>,
    /// A resource.
    pub resource: Option<String>,
    /// A resource template.
    pub resource_template: Option<String>,
    /// A method of an extension.
    pub method: Option<String>,
    /// The pool that has it.
    pub pool: String,
    /// What a tool says of itself, such as `readOnlyHint`.
    pub annotations: Map<String, Value>,
}

/// What must come of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expected {
    /// It may be used.
    Allow,
    /// It may be used once the person agrees.
    Ask,
    /// It may not.
    Deny,
}

impl Expected {
    /// As cases and reports write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What came of a case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What the case is called.
    pub name: String,
    /// What the rules said.
    pub decision: Expected,
    /// The rule that decided.
    pub rule: Option<String>,
    /// Whether a rule could not be evaluated.
    pub failed: bool,
    /// Whether that is what was expected.
    pub passed: bool,
}

impl Case {
    /// Asks the rules. `number` names the case if nothing else does.
    ///
    /// # Errors
    /// When it names no target, or several.
    pub fn run(&self, policy: &Policy, number: usize) -> Result<Outcome, String> {
        let CaseTarget {
            tool,
            prompt,
            resource,
            resource_template,
            method,
            ..
        } = &self.target;
        let mut named = [
            (TargetKind::Tool, tool),
            (TargetKind::Prompt, prompt),
            (TargetKind::Resource, resource),
            (TargetKind::ResourceTemplate, resource_template),
            (TargetKind::Method, method),
        ]
        .into_iter()
        .filter_map(|(kind, name)| Some((kind, name.as_deref()?)));
        let (Some((kind, target)), None) = (named.next(), named.next()) else {
            return Err(format!(
                "case {number}: target must have one of tool, prompt, resource, resource_template and method"
            ));
        };
        let item = RawJson::of(&json!({ "annotations": self.target.annotations }));
        let claims = RawJson::of(&self.subject.claims);
        let client = RawJson::of(&self.subject.client);
        let subject = policy.subject(&Subject {
            principal: &self.subject.principal,
            scopes: &self.subject.scopes,
            claims: Some(&claims),
            client: Some(&client),
            read: None,
        });
        let decision = policy.decide(
            &subject,
            &Target {
                kind,
                name: target,
                pool: &self.target.pool,
                item: Some(&item),
                // Each case may say something else of what has the same name.
                catalog: number as u64,
            },
        );
        let said = match (decision.allowed, decision.asks) {
            (_, true) => Expected::Ask,
            (true, false) => Expected::Allow,
            (false, false) => Expected::Deny,
        };
        let rule = policy.rule(decision).map(|name| name.to_string());
        let by_the_rule = (self.rule.as_ref())
            .is_none_or(|expected| *expected == rule.clone().unwrap_or_default());
        let named = || {
            format!(
                "{number}: {} {target} by {:?}",
                kind.as_str(),
                self.subject.principal
            )
        };
        Ok(Outcome {
            name: self.name.clone().unwrap_or_else(named),
            decision: said,
            failed: decision.failed,
            passed: said == self.expect && by_the_rule,
            rule,
        })
    }
}
