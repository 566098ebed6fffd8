//! A modern call that waits for a person: the question ends the request, and its retry brings the answer.
//!
//! Nothing is kept here meanwhile. The sealed state names the call that the yes is for: its id, and the worker that may run
//! it. That one runs a call of an id once, so a state that comes again begins nothing more. The seal binds it to the principal,
//! the tool and the arguments.

use shoal_ports::{Binding, Call, CallId, CallOutcome, Durability, LedgerNumber, WorkerId};
use shoal_protocol::{Continuation, Method, RawObject};

use super::{Answer, question};
use crate::bridge::Modern;
use crate::pools::View;

/// The key of the question among `inputRequests`.
const KEY: &str = "approval";

/// A call that a person has agreed to.
#[derive(Debug)]
pub(crate) struct Approved {
    id: CallId,
    at: Option<Binding>,
}

/// The `InputRequiredResult` that asks whether a call may begin.
pub(crate) fn input_required(
    request: &Modern,
    call: &Call,
    pool: &str,
    worker: Option<&Binding>,
) -> CallOutcome {
    let params = match question(&request.shared.view(), call, pool) {
        Ok(params) => params,
        Err(outcome) => return outcome,
    };
    let continuation = Continuation::Approval {
        // Nothing has begun under the request's own id, whatever it goes on with.
        call: request.call.to_string(),
        worker: worker.map(|binding| binding.worker.to_string()),
        ledger: worker.and_then(|binding| binding.ledger).map(pair),
    };
    request.ask(KEY, Method::Elicit, params, continuation)
}

/// Reads the answer that a retry brings; `None` where it brings none, so that the person is asked again.
///
/// # Errors
/// What the client is told in place of a result: the person has not agreed.
pub(crate) fn read_retry(
    of: &Call,
    responses: Option<&RawObject>,
    (id, worker, ledger): (CallId, Option<&str>, Option<(u64, u64)>),
) -> Result<Option<Approved>, CallOutcome> {
    let Some(said) = responses.and_then(|given| given.get(KEY)) else {
        return Ok(None);
    };
    let answer = Answer::of_result(&said);
    answer.tell(of, Some(id));
    if answer != Answer::Accepted {
        return Err(answer.refusal());
    }
    let at = worker.map(|worker| Binding {
        worker: WorkerId::new(worker),
        ledger: ledger.map(|(incarnation, number)| LedgerNumber {
            incarnation,
            number,
        }),
    });
    Ok(Some(Approved { id, at }))
}

impl Approved {
    /// Makes a call the one that was agreed to; `false` where its worker is not there any more, so that nobody could tell whether
    /// it has been run.
    pub(crate) fn bind(self, view: &View, call: &mut Call) -> bool {
        if call.durability == Durability::Repeatable {
            return true;
        }
        let Some(Binding { worker, ledger }) = self.at else {
            return false;
        };
        if ledger.is_none() || view.member(&worker).is_none() {
            return false;
        }
        call.id = self.id;
        call.worker = Some(worker);
        call.ledger = ledger;
        true
    }
}

fn pair(ledger: LedgerNumber) -> (u64, u64) {
    (ledger.incarnation, ledger.number)
}
