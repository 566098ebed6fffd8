//! Checks an expression statically, and bounds its cost.

use cel::Program;
use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};

use super::ExpressionError;

/// Maximum nesting of macros such as `all`, because each multiplies the cost.
const DEEPEST: usize = 2;
const LONGEST_PATTERN: usize = 256;
/// Maximum nesting of an expression, because each level takes stack at evaluation, most in an unoptimised build.
const LEVELS: usize = 24;

const VARIABLES: &[&str] = &[
    "principal",
    "issuer",
    "scopes",
    "claims",
    "client",
    "target",
];
const CLIENT: &[&str] = &["name", "version"];
const TARGET: &[&str] = &[
    "kind",
    "name",
    "pool",
    "annotations",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
];
/// Functions that conditions may call. Macros are missing, because they are expanded before the check.
const FUNCTIONS: &[&str] = &[
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "string",
    "int",
    "double",
    "bool",
];
const OPERATORS: &[&str] = &[
    "_?_:_",
    "_&&_",
    "_||_",
    "!_",
    "_-_",
    "_+_",
    "_*_",
    "_/_",
    "_%_",
    "_==_",
    "_!=_",
    "_>=_",
    "_<=_",
    "_>_",
    "_<_",
    "-_",
    "_[_]",
    "@in",
    "@not_strictly_false",
];

const HINTS: &[&str] = &["read_only", "destructive", "idempotent", "open_world"];

const NO_CONDITIONS: &[&str] = &[
    "size", "string", "int", "double", "_-_", "_+_", "_*_", "_/_", "_%_", "-_",
];

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checked {
    pub(super) grant: bool,
    pub(super) client: bool,
    pub(super) target: bool,
}

pub(super) fn check(program: &Program) -> Result<Checked, ExpressionError> {
    let mut check = ExpressionCheck {
        program,
        found: Checked::default(),
        bound: Vec::new(),
        walks: 0,
        level: 0,
    };
    check.visit(program.expression())?;
    check.condition(program.expression())?;
    Ok(check.found)
}

struct ExpressionCheck<'p> {
    program: &'p Program,
    found: Checked,
    bound: Vec<&'p str>,
    walks: usize,
    level: usize,
}

impl<'p> ExpressionCheck<'p> {
    fn visit(&mut self, node: &'p IdedExpr) -> Result<(), ExpressionError> {
        self.level += 1;
        if self.level > LEVELS {
            return Err(self.wrong(node.id, "it is nested too deeply"));
        }
        self.visit_inner(node)?;
        self.level -= 1;
        Ok(())
    }

    fn visit_inner(&mut self, node: &'p IdedExpr) -> Result<(), ExpressionError> {
        match &node.expr {
            Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.variable(node.id, name),
            Expr::Select(select) => {
                if let Expr::Ident(name) = &select.operand.expr {
                    self.field(node.id, name, &select.field)?;
                }
                self.visit(&select.operand)
            }
            Expr::Call(call) => {
                let name = call.func_name.as_str();
                if name == "matches" {
                    self.pattern(node.id, call.args.last())?;
                } else if !FUNCTIONS.contains(&name) && !OPERATORS.contains(&name) {
                    let reason = format!(
                        "there is no function {name:?}; there are {}, and the macros has, all, exists, exists_one, map and filter",
                        FUNCTIONS.join(", ")
                    );
                    return Err(self.wrong(node.id, reason));
                }
                let target = call.target.as_deref();
                target
                    .into_iter()
                    .chain(&call.args)
                    .try_for_each(|it| self.visit(it))
            }
            Expr::List(list) => list.elements.iter().try_for_each(|it| self.visit(it)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.visit(&entry.key)?;
                    self.visit(&entry.value)
                }
                EntryExpr::StructField(field) => self.visit(&field.value),
            }),
            Expr::Comprehension(walk) => {
                self.visit(&walk.iter_range)?;
                if self.walks == DEEPEST {
                    let reason = format!("macros can nest at most {DEEPEST} levels deep");
                    return Err(self.wrong(node.id, reason));
                }
                self.walks += 1;
                let before = self.bound.len();
                self.bound.push(&walk.iter_var);
                self.bound.extend(walk.iter_var2.as_deref());
                self.bound.push(&walk.accu_var);
                let parts = [
                    &walk.accu_init,
                    &walk.loop_cond,
                    &walk.loop_step,
                    &walk.result,
                ];
                parts.into_iter().try_for_each(|it| self.visit(it))?;
                self.bound.truncate(before);
                self.walks -= 1;
                Ok(())
            }
            Expr::Struct(_) | Expr::Unspecified => {
                Err(self.wrong(node.id, "an expression cannot create messages"))
            }
        }
    }

    fn variable(&mut self, id: u64, name: &str) -> Result<(), ExpressionError> {
        if self.bound.contains(&name) {
            return Ok(());
        }
        match name {
            "principal" => {}
            "issuer" | "scopes" | "claims" => self.found.grant = true,
            "client" => self.found.client = true,
            "target" => self.found.target = true,
            _ => {
                let reason = format!(
                    "there is no variable {name:?}; there are {}",
                    VARIABLES.join(", ")
                );
                return Err(self.wrong(id, reason));
            }
        }
        Ok(())
    }

    fn field(&self, id: u64, of: &str, field: &str) -> Result<(), ExpressionError> {
        let fields = match of {
            _ if self.bound.contains(&of) => return Ok(()),
            "client" => CLIENT,
            "target" => TARGET,
            _ => return Ok(()),
        };
        if fields.contains(&field) {
            return Ok(());
        }
        let reason = format!("{of} has no {field:?}; it has {}", fields.join(", "));
        Err(self.wrong(id, reason))
    }

    /// A pattern must be a literal, because a client's pattern could take long to compile.
    fn pattern(&self, id: u64, pattern: Option<&IdedExpr>) -> Result<(), ExpressionError> {
        let Some(Expr::Literal(LiteralValue::String(text))) = pattern.map(|it| &it.expr) else {
            return Err(self.wrong(id, "the pattern of matches must be a string literal"));
        };
        if text.inner().len() > LONGEST_PATTERN {
            let reason = format!("a pattern has at most {LONGEST_PATTERN} bytes");
            return Err(self.wrong(id, reason));
        }
        let compiled = regex::Regex::new(text.inner());
        let unusable = |error| {
            let reason = format!("the pattern of matches cannot be used: {error}");
            self.wrong(id, reason)
        };
        compiled.map(drop).map_err(unusable)
    }

    /// Refuses an expression that cannot be true or false. The types of claims are known only at evaluation.
    fn condition(&self, node: &IdedExpr) -> Result<(), ExpressionError> {
        let is_condition = match &node.expr {
            Expr::Literal(literal) => matches!(literal, LiteralValue::Boolean(_)),
            Expr::Ident(name) => !VARIABLES.contains(&name.as_str()),
            Expr::Select(select) => match &select.operand.expr {
                Expr::Ident(of) if of == "client" => select.test,
                Expr::Ident(of) if of == "target" => {
                    select.test || HINTS.contains(&select.field.as_str())
                }
                _ => true,
            },
            Expr::Call(call) => {
                let name = call.func_name.as_str();
                let parts = match name {
                    "_&&_" | "_||_" | "!_" | "_?_:_" => &call.args[..],
                    _ => &[],
                };
                parts.iter().try_for_each(|it| self.condition(it))?;
                !NO_CONDITIONS.contains(&name)
            }
            Expr::List(_) | Expr::Map(_) => false,
            _ => true,
        };
        match is_condition {
            true => Ok(()),
            false => Err(self.wrong(node.id, "it is neither true nor false")),
        }
    }

    fn wrong(&self, id: u64, reason: impl Into<String>) -> ExpressionError {
        let info = self.program.source_info();
        let offset = info.offset_for(id).map_or(0, |(start, _)| start as usize);
        let before: String = info.source.chars().take(offset).collect();
        let line = before.rsplit('\n').next().unwrap_or_default();
        ExpressionError {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            reason: reason.into(),
        }
    }
}
