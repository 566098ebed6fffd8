use std::sync::Arc;
use std::time::Duration;

use shoal_ports::FailureKey;
use shoal_protocol::{RpcError, code};

use super::ProcessPool;
use crate::stdio::placement::{SlotId, TooManyAsk};
use crate::upstream::{ConnectionShare, OpenQuestion, ServerConnection};

const ASK_AGAIN: Duration = Duration::from_secs(10);

/// Dropping the lease returns the process.
pub(in crate::stdio) struct ProcessLease {
    pub(in crate::stdio) process: Arc<ServerConnection>,
    pub(super) alone: bool,
    pub(super) apart: bool,
    pub(super) key: FailureKey,
    pub(super) slot: SlotId,
    pub(super) pool: Arc<ProcessPool>,
}

/// An open question of a call, whose process meanwhile does not count.
struct LeaseQuestion<'a>(&'a ProcessLease);

impl ConnectionShare for ProcessLease {
    fn is_alone(&self) -> bool {
        self.alone
    }

    fn ask(&self) -> Result<Box<dyn OpenQuestion + '_>, RpcError> {
        let asked = self.pool.state.lock().placement.ask(self.slot);
        let Err(too_many) = asked else {
            return Ok(Box::new(LeaseQuestion(self)));
        };
        let whose = match too_many {
            TooManyAsk::OfPrincipal(own) => format!("{own} calls of this principal"),
            TooManyAsk::Of(all) => format!("{all} calls"),
        };
        let seconds = ASK_AGAIN.as_secs();
        Err(RpcError::new(
            code::OVERLOADED,
            format!(
                "the client was not asked: {whose} wait for answers in processes of this server; try again in {seconds} s"
            ),
        ))
    }
}

impl OpenQuestion for LeaseQuestion<'_> {
    fn takes_long(&self) {
        self.0.pool.proceed();
    }
}

impl Drop for LeaseQuestion<'_> {
    fn drop(&mut self) {
        let lease = self.0;
        lease.pool.state.lock().placement.answered(lease.slot);
    }
}

impl Drop for ProcessLease {
    fn drop(&mut self) {
        {
            let mut state = self.pool.state.lock();
            state.placement.release(self.slot, self.alone);
            if let Some(process) = state.processes.get_mut(&self.slot) {
                process.occupants.leave(&self.key);
            }
        }
        self.pool.proceed();
    }
}
