//! Rules that say who may use which tools, prompts and resources.
//!
//! | step | where |
//! |---|---|
//! | the rules as they are written | `config` |
//! | conditions in CEL: checks, and their bounds | `expression` |
//! | whether one rule applies | `rule` |
//! | what all rules say together, and what is kept of that | `policy` |
//! | the rules in force, and their file | `rules_in_force` |
//! | cases that rules must pass: `shoal policy test` | `cases` |
//!
//! Rules see who asks ([`Subject`]) and what for ([`Target`]), and neither arguments nor the time: so a decision can be kept.

mod cases;
mod config;
mod error;
mod expression;
mod policy;
mod rule;
mod rules_in_force;
mod subject;
mod target;

pub use cases::{Case, CaseSubject, CaseTarget, Cases, Expected, Outcome};
pub use config::{Effect, Hint, PolicyConfig, Rule, RulesFile};
pub use error::{PolicyError, RuleError};
pub use expression::ExpressionError;
pub use policy::{Decision, Policy};
pub use rules_in_force::RulesInForce;
pub use subject::{KnownSubject, Subject};
pub use target::{Target, TargetKind};
