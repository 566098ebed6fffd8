use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, Weighter};
use sha2::{Digest as _, Sha256};
use shoal_ports::Memo;
use shoal_telemetry::metrics::metrics;

use crate::config::{Effect, Rule};
use crate::error::RuleError;
use crate::rule::CompiledRule;
use crate::subject::{KnownSubject, Reads, Subject, SubjectKey, SubjectWeight};
use crate::target::{Annotations, Target, TargetKind};

const MOST_RULES: usize = 1000;
const SUBJECT_BYTES: u64 = 16 << 20;
const DECISION_BYTES: u64 = 16 << 20;

type Subjects = Cache<SubjectKey, Arc<KnownSubject>, SubjectWeight, RandomState>;
type Decisions = Cache<DecisionKey, Decision, DecisionWeight, RandomState>;

/// Checked, immutable rules, replaced as a whole.
pub struct Policy {
    rules: Box<[CompiledRule]>,
    reads: Reads,
    number: u64,
    fingerprint: u64,
    subjects: Subjects,
    decisions: Decisions,
}

/// A decision, and its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the target may be used.
    pub allowed: bool,
    /// Whether a person must approve each use.
    pub asks: bool,
    rule: Option<u32>,
    /// Whether a rule could not be evaluated.
    pub failed: bool,
}

impl Decision {
    /// Denies a target because no rule allows it.
    pub const NO_RULE_ALLOWS: Self = Self {
        allowed: false,
        asks: false,
        rule: None,
        failed: false,
    };
}

impl Policy {
    /// Whether there are rules and all of them deny, so that nobody can use anything.
    pub fn only_denies(&self) -> bool {
        let mut effects = self.rules.iter().map(|rule| rule.effect);
        !self.rules.is_empty() && effects.all(|effect| effect == Effect::Deny)
    }

    /// Checks and compiles rules.
    ///
    /// # Errors
    /// The first unusable rule.
    pub fn compile(rules: &[Rule]) -> Result<Self, RuleError> {
        let mut names = HashSet::new();
        let twice = rules.iter().find(|rule| !names.insert(&rule.name));
        if let Some(twice) = twice {
            return Err(RuleError::new(
                &twice.name,
                "another rule has the same name",
            ));
        }
        if let Some(first) = rules.get(MOST_RULES) {
            let reason = format!("there are more than {MOST_RULES} rules");
            return Err(RuleError::new(&first.name, reason));
        }
        let compiled: Result<Box<[_]>, _> = rules.iter().map(CompiledRule::compile).collect();
        let rules_text = serde_json::to_vec(rules).unwrap_or_default();
        let digest: [u8; 32] = Sha256::digest(rules_text).into();
        let rules = compiled?;
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            reads: Reads {
                grant: rules.iter().any(CompiledRule::reads_grant),
                client: rules.iter().any(CompiledRule::reads_client),
            },
            rules,
            fingerprint: u64::from_le_bytes(std::array::from_fn(|at| digest[at])),
            subjects: Cache::with(
                4096,
                SUBJECT_BYTES,
                SubjectWeight,
                RandomState::default(),
                DefaultLifecycle::default(),
            ),
            decisions: Cache::with(
                65_536,
                DECISION_BYTES,
                DecisionWeight,
                RandomState::default(),
                DefaultLifecycle::default(),
            ),
        })
    }

    /// Whether there are no rules, so that callers may use everything.
    pub fn is_open(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns a hash of the rules, equal on every node.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Returns the name of the rule that decided, if any.
    pub fn rule(&self, decision: Decision) -> Option<&Arc<str>> {
        let rule = self.rules.get(decision.rule? as usize)?;
        Some(&rule.name)
    }

    /// Reads a caller's facts, usually from a cache. The memo of a known grant saves hashing all claims.
    pub fn subject(&self, subject: &Subject<'_>) -> Arc<KnownSubject> {
        let read = subject.read.filter(|_| !self.reads.client);
        let known = read.and_then(Memo::get::<KnownSubject>);
        let is_ours = |known: &Arc<KnownSubject>| {
            known.policy == self.number && *known.principal == *subject.principal
        };
        if let Some(known) = known.filter(is_ours) {
            return known;
        }
        let known = self.look_up(subject);
        if let Some(read) = read {
            read.set(&known);
        }
        known
    }

    fn look_up(&self, subject: &Subject<'_>) -> Arc<KnownSubject> {
        let key = subject.key(self.reads);
        if let Some(known) = self.subjects.get(&key) {
            return known;
        }
        let known = Arc::new(KnownSubject::read(subject, self.number, self.rules.len()));
        self.subjects.insert(key.kept(), known.clone());
        known
    }

    /// Decides whether the caller may use the target, usually by one cache lookup without allocation.
    pub fn decide(&self, subject: &KnownSubject, target: &Target<'_>) -> Decision {
        let key = DecisionRef {
            subject: subject.number,
            catalog: target.catalog,
            kind: target.kind,
            name: target.name,
            pool: match target.kind {
                TargetKind::Method => target.pool,
                _ => "",
            },
        };
        if let Some(decision) = self.decisions.get(&key) {
            return decision;
        }
        let decision = self.evaluate(subject, target);
        self.decisions.insert(key.kept(), decision);
        decision
    }

    /// Evaluates all rules: deny wins over ask, and ask over allow. Conditions fail closed: a deny rule still denies,
    /// an allow rule is skipped, and an ask rule asks before any use that another rule allows.
    fn evaluate(&self, subject: &KnownSubject, target: &Target<'_>) -> Decision {
        let annotations = Annotations::of(target);
        let (mut allowed_by, mut asks_by, mut failed_ask) = (None, None, None);
        let mut failed = false;
        for (at, rule) in self.rules.iter().enumerate() {
            let settled = match rule.effect {
                Effect::Deny => false,
                Effect::Ask => asks_by.is_some(),
                Effect::Allow => allowed_by.is_some() || asks_by.is_some(),
            };
            if settled {
                continue;
            }
            let place = u32::try_from(at).ok();
            let applies = rule.applies(at, subject, target, &annotations);
            let applies = applies.unwrap_or_else(|error| {
                failed = true;
                metrics().policy.failed();
                tracing::debug!(
                    rule = &*rule.name, principal = %subject.principal, kind = target.kind.as_str(),
                    name = target.name, error, "a rule could not be evaluated"
                );
                if rule.effect == Effect::Ask {
                    failed_ask = place;
                }
                rule.effect == Effect::Deny
            });
            match (applies, rule.effect) {
                (true, Effect::Deny) => {
                    return Decision {
                        allowed: false,
                        asks: false,
                        rule: place,
                        failed,
                    };
                }
                (true, Effect::Ask) => asks_by = place,
                (true, Effect::Allow) => allowed_by = place,
                (false, _) => {}
            }
        }
        let asks_by = asks_by.or(failed_ask.filter(|_| allowed_by.is_some()));
        Decision {
            allowed: allowed_by.is_some() || asks_by.is_some() || self.rules.is_empty(),
            asks: asks_by.is_some(),
            rule: asks_by.or(allowed_by),
            failed,
        }
    }
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policy")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

#[derive(Hash)]
struct DecisionRef<'a> {
    subject: u64,
    catalog: u64,
    kind: TargetKind,
    name: &'a str,
    /// The pool of a method, because several pools may offer the same method. Empty for other targets.
    pool: &'a str,
}

#[derive(Hash, PartialEq, Eq)]
struct DecisionKey {
    subject: u64,
    catalog: u64,
    kind: TargetKind,
    name: Box<str>,
    pool: Box<str>,
}

impl DecisionRef<'_> {
    fn kept(&self) -> DecisionKey {
        DecisionKey {
            subject: self.subject,
            catalog: self.catalog,
            kind: self.kind,
            name: self.name.into(),
            pool: self.pool.into(),
        }
    }
}

impl Equivalent<DecisionKey> for DecisionRef<'_> {
    fn equivalent(&self, key: &DecisionKey) -> bool {
        (self.subject, self.catalog, self.kind) == (key.subject, key.catalog, key.kind)
            && *self.name == *key.name
            && *self.pool == *key.pool
    }
}

#[derive(Clone)]
struct DecisionWeight;

impl Weighter<DecisionKey, Decision> for DecisionWeight {
    fn weight(&self, key: &DecisionKey, _: &Decision) -> u64 {
        key.name.len() as u64 + key.pool.len() as u64 + 112
    }
}

#[cfg(test)]
mod tests;
