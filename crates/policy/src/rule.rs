use std::sync::Arc;

use percent_encoding::percent_decode_str;
use shoal_ports::matches_pattern;

use crate::config::{Effect, Hint, Rule};
use crate::error::RuleError;
use crate::expression::Expression;
use crate::subject::KnownSubject;
use crate::target::{Annotations, Target, TargetKind};

const MOST_ENTRIES: usize = 10_000;

#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) name: Arc<str>,
    pub(crate) effect: Effect,
    when: Option<Expression>,
    principals: NamePatterns,
    scopes: NamePatterns,
    pools: NamePatterns,
    tools: NamePatterns,
    prompts: NamePatterns,
    resources: NamePatterns,
    methods: NamePatterns,
    hints: Vec<Hint>,
}

impl CompiledRule {
    pub(crate) fn compile(rule: &Rule) -> Result<Self, RuleError> {
        let wrong = |reason: &str| RuleError::new(&rule.name, reason);
        if rule.name.is_empty() || rule.name.len() > 128 || rule.name.contains(char::is_control) {
            return Err(wrong(
                "a name has 1 to 128 bytes, and no control characters",
            ));
        }
        let lists = [
            &rule.principals,
            &rule.scopes,
            &rule.pools,
            &rule.tools,
            &rule.prompts,
            &rule.resources,
            &rule.methods,
        ];
        if lists.iter().any(|list| list.iter().any(String::is_empty)) {
            return Err(wrong("a list has an empty entry, which never matches"));
        }
        if lists.iter().map(|list| list.len()).sum::<usize>() > MOST_ENTRIES {
            return Err(wrong("its lists have too many entries"));
        }
        let others = [&rule.prompts, &rule.resources, &rule.methods];
        let names_others = others.iter().any(|list| !list.is_empty());
        if rule.effect == Effect::Ask && names_others {
            return Err(wrong(
                "effect = \"ask\" works only for tools, not for prompts, resources or methods of extensions",
            ));
        }
        if !rule.hints.is_empty() && rule.tools.is_empty() && names_others {
            return Err(wrong(
                "hints apply only to tools, but the rule names no tools",
            ));
        }
        let when = match &rule.when {
            None => None,
            Some(when) => Some(
                Expression::compile(when)
                    .map_err(|error| RuleError::new(&rule.name, format!("when: {error}")))?,
            ),
        };
        let uris = match rule.effect == Effect::Deny {
            // File systems and servers may ignore case and encoding, so another spelling could otherwise
            // reach a denied resource.
            true => NamePatterns::folded(&rule.resources),
            false => NamePatterns::of(&rule.resources),
        };
        Ok(Self {
            name: rule.name.as_str().into(),
            effect: rule.effect,
            when,
            principals: NamePatterns::of(&rule.principals),
            scopes: NamePatterns::of(&rule.scopes),
            pools: NamePatterns::of(&rule.pools),
            tools: NamePatterns::of(&rule.tools),
            prompts: NamePatterns::of(&rule.prompts),
            resources: uris,
            methods: NamePatterns::of(&rule.methods),
            hints: rule.hints.clone(),
        })
    }

    pub(crate) fn reads_grant(&self) -> bool {
        !self.scopes.is_empty() || self.when.as_ref().is_some_and(Expression::reads_grant)
    }

    pub(crate) fn reads_client(&self) -> bool {
        self.when.as_ref().is_some_and(Expression::reads_client)
    }

    /// Whether the rule at index `at` applies; an error if its condition cannot be evaluated.
    pub(crate) fn applies(
        &self,
        at: usize,
        subject: &KnownSubject,
        target: &Target<'_>,
        annotations: &Annotations,
    ) -> Result<bool, String> {
        let listed = self.is_for(target)
            && self.principals.fit(&subject.principal)
            && (self.scopes.is_empty() || subject.scopes.iter().any(|it| self.scopes.has(it)))
            && self.hints.iter().all(|hint| annotations.has(*hint));
        let when = match &self.when {
            Some(when) if listed => when,
            _ => return Ok(listed),
        };
        if when.reads_target() {
            return when.is_met(subject, target, annotations);
        }
        let mut failed = None;
        let met = subject.met[at].get_or_init(|| {
            let met = when.is_met(subject, target, annotations);
            met.map_err(|error| failed = Some(error)).ok()
        });
        met.ok_or_else(|| failed.unwrap_or_else(|| "it failed before".to_owned()))
    }

    fn is_for(&self, target: &Target<'_>) -> bool {
        let is_tool = target.kind == TargetKind::Tool;
        let for_tools = !self.hints.is_empty() || self.effect == Effect::Ask;
        if !self.pools.fit(target.pool) || (for_tools && !is_tool) {
            return false;
        }
        let lists = [&self.tools, &self.prompts, &self.resources, &self.methods];
        if lists.iter().all(|list| list.is_empty()) {
            // An extension's method has unknown effects, so only a rule that names methods can allow it.
            return target.kind != TargetKind::Method || self.effect == Effect::Deny;
        }
        let list = match target.kind {
            TargetKind::Tool => &self.tools,
            TargetKind::Prompt => &self.prompts,
            TargetKind::Resource | TargetKind::ResourceTemplate => &self.resources,
            TargetKind::Method => &self.methods,
        };
        list.has(target.name)
    }
}

fn decoded(pattern: &str) -> String {
    let decoded = percent_decode_str(pattern).decode_utf8_lossy();
    folded(&decoded)
}

/// Folds the case through upper case, because some file systems treat `ſ` as a small `S`.
fn folded(text: &str) -> String {
    let letters = text.chars().flat_map(char::to_uppercase);
    letters.flat_map(char::to_lowercase).collect()
}

/// `*` matches any characters.
#[derive(Debug)]
struct NamePatterns {
    all: Box<[String]>,
    folded: bool,
}

impl NamePatterns {
    fn of(all: &[String]) -> Self {
        Self {
            all: all.into(),
            folded: false,
        }
    }

    fn folded(all: &[String]) -> Self {
        Self {
            all: all
                .iter()
                .flat_map(|it| [folded(it), decoded(it)])
                .collect(),
            folded: true,
        }
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn fit(&self, name: &str) -> bool {
        self.is_empty() || self.has(name)
    }

    fn has(&self, name: &str) -> bool {
        let any = |name: &str| self.all.iter().any(|it| matches_pattern(it, name));
        match self.folded {
            true => any(&folded(name)),
            false => any(name),
        }
    }
}
