//! Test cases for rules.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use shoal_protocol::RawJson;

use crate::config::Rule;
use crate::policy::Policy;
use crate::subject::Subject;
use crate::target::{Target, TargetKind};

/// A file of test cases.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table with [[cases]]")]
pub struct Cases {
    /// The rules to test, by default the configured ones.
    pub rules: Vec<Rule>,
    /// The test cases.
    pub cases: Vec<Case>,
}

/// A test case.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with subject, target and expect"
)]
pub struct Case {
    /// The case's name in the report, which otherwise describes the case.
    pub name: Option<String>,
    /// The caller.
    #[serde(default)]
    pub subject: CaseSubject,
    /// The tool, prompt, resource or method to use.
    pub target: CaseTarget,
    /// The expected decision.
    pub expect: Expected,
    /// The rule that must decide; `""` for none.
    pub rule: Option<String>,
}

/// A case's caller.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct CaseSubject {
    /// The caller's principal.
    pub principal: String,
    /// The caller's scopes.
    pub scopes: Vec<Arc<str>>,
    /// The claims of the caller's token.
    pub claims: Map<String, Value>,
    /// The caller's client, for example `{ name = "…", version = "…" }`.
    pub client: Map<String, Value>,
}

/// A case's target. Exactly one of the first five fields is set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct CaseTarget {
    /// A tool's name.
    pub tool: Option<String>,
    /// A prompt's name.
    pub prompt: Option<String>,
    /// A resource's URI.
    pub resource: Option<String>,
    /// A resource template, unexpanded.
    pub resource_template: Option<String>,
    /// An extension's method.
    pub method: Option<String>,
    /// The target's pool.
    pub pool: String,
    /// A tool's annotations, such as `readOnlyHint`.
    pub annotations: Map<String, Value>,
}

/// An expected decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expected {
    /// The caller may use the target.
    Allow,
    /// A person must approve the use.
    Ask,
    /// The caller may not use the target.
    Deny,
}

impl Expected {
    /// Returns the name in cases and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A case's outcome.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The case's name.
    pub name: String,
    /// The decision of the rules.
    pub decision: Expected,
    /// The rule that decided, if any.
    pub rule: Option<String>,
    /// Whether a rule could not be evaluated.
    pub failed: bool,
    /// Whether the outcome is as expected.
    pub passed: bool,
}

impl Case {
    /// Runs the case. `number` replaces a missing name.
    ///
    /// # Errors
    /// The case does not have exactly one target.
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
                // Decisions are cached for each catalog, and two cases may give the same name different annotations.
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
