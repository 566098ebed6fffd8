//! Conditions in CEL, whose cost is bounded at load time.

mod check;
mod values;

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::thread;

use cel::{Context, Env, Program, Value};

use self::check::Checked;
use crate::subject::KnownSubject;
use crate::target::{Annotations, Target};

/// Maximum bytes of a condition.
const LONGEST: usize = 4096;
/// Enough stack to parse a condition of maximum length.
const PARSER_STACK: usize = 256 << 20;

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

pub(crate) struct Expression {
    program: Program,
    checked: Checked,
}

/// An expression's error, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct ExpressionError {
    /// The line, from 1.
    pub line: usize,
    /// The character in that line, from 1.
    pub column: usize,
    /// The reason.
    pub reason: String,
}

impl Expression {
    pub(crate) fn compile(source: &str) -> Result<Self, ExpressionError> {
        let at_start = |reason: String| ExpressionError {
            line: 1,
            column: 1,
            reason,
        };
        if source.len() > LONGEST {
            let reason = format!("an expression has at most {LONGEST} bytes");
            return Err(at_start(reason));
        }
        // The parser overflows a normal stack before it reaches its own depth limit.
        let parse = || Self::parse(source);
        let parsed = thread::scope(|scope| {
            let parser = thread::Builder::new().stack_size(PARSER_STACK);
            let parser = parser.spawn_scoped(scope, parse).ok()?;
            parser.join().ok()
        });
        parsed.unwrap_or_else(|| Err(at_start("the expression cannot be parsed".to_owned())))
    }

    fn parse(source: &str) -> Result<Self, ExpressionError> {
        let program = ENV.compile(source).map_err(|errors| {
            let first = errors.errors.into_iter().next();
            let (at, reason) = first.map_or(((1, 1), String::new()), |it| (it.pos, it.msg));
            let position = |at: isize| usize::try_from(at).unwrap_or(1).max(1);
            ExpressionError {
                line: position(at.0),
                column: position(at.1),
                reason,
            }
        })?;
        let checked = check::check(&program)?;
        Ok(Self { program, checked })
    }

    pub(crate) fn reads_grant(&self) -> bool {
        self.checked.grant
    }

    pub(crate) fn reads_client(&self) -> bool {
        self.checked.client
    }

    pub(crate) fn reads_target(&self) -> bool {
        self.checked.target
    }

    pub(crate) fn is_met(
        &self,
        subject: &KnownSubject,
        target: &Target<'_>,
        annotations: &Annotations,
    ) -> Result<bool, String> {
        let mut context = Context::with_env(ENV.clone());
        values::add(&mut context, self.checked, subject, target, annotations)?;
        match self.program.execute(&context) {
            Ok(Value::Bool(met)) => Ok(met),
            Ok(_) => Err("it is neither true nor false".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression")
            .field(&self.program.source_info().source)
            .finish()
    }
}

#[cfg(test)]
mod tests;
