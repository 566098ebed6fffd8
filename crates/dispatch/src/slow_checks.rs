use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{CallFailure, CallOutcome, Principal};
use shoal_protocol::{RawJson, RpcError};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::catalog::{ArgumentVerdict, Budget, CatalogTool};
use crate::config::ArgumentPolicy;
use crate::shares::CheckShares;

/// The budget of a check on the call's own thread, about what the rest of the call's path costs.
pub(crate) const AT_ONCE: Budget = Budget {
    steps: 20_000,
    stack: 256 << 10,
    time: Duration::from_millis(20),
};
/// Bytes of stack and processor time for a check on a blocking thread.
const STACK: usize = 1 << 20;
const TIME: Duration = Duration::from_secs(5);
/// Maximum checks that run or wait, in total and per principal.
const MOST: usize = 64;
const MOST_OF_PRINCIPAL: usize = 16;
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) struct ArgumentCheck {
    pub(crate) tool: Arc<CatalogTool>,
    pub(crate) name: String,
    pub(crate) arguments: RawJson,
    pub(crate) policy: ArgumentPolicy,
}

pub(crate) struct SlowChecks {
    budget: Budget,
    threads: Arc<Semaphore>,
    under_way: Mutex<CheckShares>,
}

struct CheckPermit {
    checking: Arc<SlowChecks>,
    principal: Principal,
}

impl ArgumentCheck {
    /// `None` if the quick budget is too small.
    pub(crate) fn at_once(&self) -> Option<Result<(), CallOutcome>> {
        match self.run(AT_ONCE) {
            Ok(ArgumentVerdict::TooComplex) => None,
            verdict => Some(self.answer(verdict)),
        }
    }

    fn run(&self, budget: Budget) -> Result<ArgumentVerdict, serde_json::Error> {
        match &self.tool.checker {
            Ok(checker) => checker.check(&self.arguments, self.policy, budget),
            Err(_) => Ok(ArgumentVerdict::Valid),
        }
    }

    fn answer(
        &self,
        verdict: Result<ArgumentVerdict, serde_json::Error>,
    ) -> Result<(), CallOutcome> {
        let name = &self.name;
        let problems = match verdict {
            Ok(ArgumentVerdict::Valid) => return Ok(()),
            Ok(ArgumentVerdict::Invalid(problems)) => problems,
            Ok(ArgumentVerdict::TooComplex) => {
                "they are too complex to validate against the tool's inputSchema; send simpler ones"
                    .to_owned()
            }
            Err(error) => {
                let message = format!("arguments cannot be read: {error}");
                return Err(CallOutcome::Refused(RpcError::invalid_params(message)));
            }
        };
        Err(execution_error(&format!(
            "Invalid arguments for tool {name}: {problems}"
        )))
    }
}

impl SlowChecks {
    pub(crate) fn new(steps: u64) -> Arc<Self> {
        let threads = available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
        Arc::new(Self {
            budget: Budget {
                steps,
                stack: STACK,
                time: TIME,
            },
            threads: Arc::new(Semaphore::new(threads)),
            under_way: Mutex::default(),
        })
    }

    /// The inner error answers a call with invalid arguments, the outer one a call when too many
    /// checks wait.
    pub(crate) async fn run(
        self: &Arc<Self>,
        check: ArgumentCheck,
        principal: &Principal,
    ) -> Result<Result<(), CallOutcome>, CallFailure> {
        let room = self.enter(principal).ok_or_else(|| {
            CallFailure::overloaded(
                "too many arguments that are slow to validate are waiting on this node",
                RETRY_AFTER,
            )
        })?;
        let thread = Arc::clone(&self.threads).acquire_owned().await;
        let thread = thread.expect("the semaphore is never closed");
        let budget = self.budget;
        let checked = spawn_blocking(move || {
            // Held until the check ends, even if the caller's future is dropped.
            let _held = (thread, room);
            check.answer(check.run(budget))
        });
        checked
            .await
            .map_err(|_| CallFailure::not_executed("the arguments could not be validated"))
    }

    fn enter(self: &Arc<Self>, principal: &Principal) -> Option<CheckPermit> {
        let entered = (self.under_way.lock()).enter(principal, MOST, MOST_OF_PRINCIPAL);
        entered.ok()?;
        Some(CheckPermit {
            checking: Arc::clone(self),
            principal: principal.clone(),
        })
    }
}

impl Drop for CheckPermit {
    fn drop(&mut self) {
        self.checking.under_way.lock().leave(&self.principal);
    }
}

/// A tool error, which the model can act on (SEP-1303).
fn execution_error(text: &str) -> CallOutcome {
    let text = RawJson::of(text);
    CallOutcome::Result(RawJson::from_valid(
        format!(
            r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#,
            text.as_str()
        )
        .into(),
    ))
}

#[cfg(test)]
mod tests {
    use shoal_ports::Principal;

    use super::{MOST, MOST_OF_PRINCIPAL, SlowChecks};

    #[test]
    fn a_principal_has_a_share_and_gives_it_back() {
        let checking = SlowChecks::new(1);
        let enter = |name: &str| checking.enter(&Principal::new(name));
        let mallory: Vec<_> = (0..MOST_OF_PRINCIPAL)
            .map(|_| enter("mallory").unwrap())
            .collect();
        assert!(enter("mallory").is_none());
        let others: Vec<_> = (MOST_OF_PRINCIPAL..MOST)
            .map(|at| enter(&format!("principal {at}")).unwrap())
            .collect();
        assert!(enter("alice").is_none());
        drop(mallory);
        assert!(enter("alice").is_some());
        drop(others);
        assert!(checking.under_way.lock().is_empty());
    }
}
