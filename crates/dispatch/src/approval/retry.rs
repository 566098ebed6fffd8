//! The question ends the request, and the client's retry brings the answer.
//!
//! Shoal keeps no state meanwhile. The sealed state names the call's id and worker, and fits only the same principal,
//! tool and arguments. The worker runs each call id once, so a replayed approval has no effect. If the person
//! refuses, Shoal makes the worker refuse this id from then on.

use std::time::Duration;

use shoal_ports::{
    Binding, Call, CallFailure, CallId, CallOutcome, LedgerNumber, MayStart, Repeat, RunningCall,
    WorkerId,
};
use shoal_protocol::{Continuation, Method, RawObject, RpcError};

use tokio::time::{Instant, timeout};

use super::{ApprovalAnswer, question};
use crate::bridge::{ModernBridge, ModernRequest, answered, answered_before, running};
use crate::dispatch::Dispatch;
use crate::pools::View;
use crate::worker_call::{CallOrigin, WorkerCall, reach};

const KEY: &str = "approval";

/// After this wait for the worker's confirmation, Shoal tells the client that an earlier approval may have started
/// the call.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct AskedCall {
    id: CallId,
    at: Option<Binding>,
}

#[derive(Debug)]
pub(crate) enum AnsweredApproval {
    Not,
    Yes(AskedCall),
    No(AskedCall, ApprovalAnswer),
}

pub(crate) fn input_required(
    request: &ModernRequest,
    call: &Call,
    pool: &str,
    worker: Option<&Binding>,
) -> CallOutcome {
    let params = match question(&request.shared.view(), call, pool) {
        Ok(params) => params,
        Err(outcome) => return outcome,
    };
    let continuation = Continuation::Approval {
        call: request.call.to_string(),
        worker: worker.map(|binding| binding.worker.to_string()),
        ledger: worker.and_then(|binding| binding.ledger).map(pair),
    };
    request.ask(KEY, Method::Elicit, params, continuation)
}

pub(crate) fn read_retry(
    of: &Call,
    responses: Option<&RawObject>,
    (id, worker, ledger): (CallId, Option<&str>, Option<(u64, u64)>),
) -> AnsweredApproval {
    let Some(said) = responses.and_then(|given| given.get(KEY)) else {
        return AnsweredApproval::Not;
    };
    let answer = ApprovalAnswer::of_result(&said);
    answer.tell(of, Some(id));
    let at = worker.map(|worker| Binding {
        worker: WorkerId::new(worker),
        ledger: ledger.map(|(incarnation, number)| LedgerNumber {
            incarnation,
            number,
        }),
    });
    let call = AskedCall { id, at };
    match answer {
        ApprovalAnswer::Accepted => AnsweredApproval::Yes(call),
        answer => AnsweredApproval::No(call, answer),
    }
}

impl AskedCall {
    /// The worker that may have begun the call, if it remembers ids.
    fn worker(&self) -> Option<&WorkerId> {
        let binding = self.at.as_ref().filter(|at| at.ledger.is_some())?;
        Some(&binding.worker)
    }

    /// Binds the call to the worker of the question, where the id runs at most once. `false` if this worker is gone,
    /// because only it knows whether the call has run.
    pub(crate) fn bind(self, view: &View, call: &mut Call) -> bool {
        let Some(binding) = self.at.filter(|at| at.ledger.is_some()) else {
            // Without a ledger, the worker does not remember ids, so only a call that is safe to repeat may run.
            return call.repeat == Repeat::Safe;
        };
        if view.member(&binding.worker).is_none() {
            return false;
        }
        call.id = self.id;
        call.binding = Some(binding);
        call.repeat = Repeat::Never;
        true
    }
}

impl Dispatch {
    /// If an earlier approval has started the call, returns that run.
    pub(crate) async fn refuse_asked(
        &self,
        mut request: ModernRequest,
        mut call: Call,
        asked: AskedCall,
        answer: &ApprovalAnswer,
    ) -> Result<RunningCall, CallFailure> {
        request.is_answer = true;
        let refusal = answered(request.shaped(answer.refusal()));
        let untold = request.shaped(answer.untold());
        let Some(worker) = asked.worker().cloned() else {
            // Without a worker that remembers ids, no yes starts a call that must not run twice.
            return Ok(match call.repeat {
                Repeat::Never => refusal,
                Repeat::Safe => answered(untold),
            });
        };
        let known = self.shared.view().member(&worker).cloned();
        let member = match known {
            Some(member) => Some(member),
            // After a start, a node does not know all workers yet.
            None => reach(&self.shared, &worker, Instant::now() + TOLD_WITHIN).await,
        };
        let bound = member.filter(|_| asked.bind(&self.shared.view(), &mut call));
        let Some(member) = bound else {
            return Ok(answered(untold));
        };
        let route = self.known_route(&call, &member.pool);
        call.may_start = MayStart::No;
        let id = call.id;
        let origin = CallOrigin::new(call, route, &self.shared);
        // A separate task tells the worker even if the request is dropped.
        let telling = tokio::spawn(WorkerCall::start(self.shared.clone(), origin));
        let Ok(Ok(told)) = timeout(TOLD_WITHIN, telling).await else {
            tracing::warn!(call = %id, "a worker has not confirmed in time that a person refused a call");
            return Ok(answered(untold));
        };
        match told {
            Ok(worker_call) => Ok(running(worker_call, |worker_call| {
                ModernBridge::started(request, worker_call)
            })),
            Err(refused) => match refused.failure {
                CallFailure::Cancelled => Ok(refusal),
                CallFailure::WorkerAway { reason } => {
                    tracing::warn!(call = %id, reason, "cannot tell a worker that a person refused a call");
                    Ok(answered(untold))
                }
                _ if refused.goes_on_elsewhere => Ok(answered(answered_before())),
                _ => Err(refused.give_up()),
            },
        }
    }
}

pub(crate) fn refused_before() -> CallOutcome {
    CallOutcome::Refused(RpcError::invalid_params(
        "requestState is not valid any more: the call that it is for was refused or cancelled; send the request without it to \
         ask the person again",
    ))
}

fn pair(ledger: LedgerNumber) -> (u64, u64) {
    (ledger.incarnation, ledger.number)
}
