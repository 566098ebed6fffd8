//! Rules that decide which tools, prompts and resources a caller may use.
//!
//! | step | where |
//! |---|---|
//! | the configured rules | `config` |
//! | conditions in CEL, and their bounds | `expression` |
//! | whether one rule applies | `rule` |
//! | the decision of all rules, and its cache | `policy` |
//! | the rules in force, and their file | `rules_in_force` |
//! | `shoal policy test` | `cases` |
//!
//! Rules see the caller ([`Subject`]) and the target ([`Target`]), but not the arguments or the time, so
//! decisions can be cached.

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
pub use rules_in_force::{RulesInForce, RulesRead};
pub use subject::{KnownSubject, Subject};
pub use target::{Target, TargetKind};
