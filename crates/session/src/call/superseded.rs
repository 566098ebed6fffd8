//! Handles workers that know a later owner of the session than this node.

use shoal_ports::{CallFailure, Epoch, GatewayError, RunningCall};
use tokio::time::sleep;

use super::{CallDriver, InFlight};
use crate::actor::record::RecordStep;
use crate::store_failure::{AGAIN, store_failed};

impl CallDriver {
    /// Asks the store whether this node still owns the session. If so, the store has lost a later claim, and this node
    /// raises its epoch above that claim so that the call can be retried.
    ///
    /// # Errors
    /// `Moved` if another node owns the session; the store's error if it cannot answer.
    pub(super) async fn stands(
        &self,
        in_flight: &mut InFlight,
        later: Epoch,
    ) -> Result<(), GatewayError> {
        let live = &in_flight.live;
        self.check_ownership(live).await?;
        // Several nodes may restore a lost claim: the first one wins.
        let entered = live.write_record(RecordStep::Restore).await;
        entered.map_err(|error| store_failed(&error, &self.config))?;
        tracing::warn!(session = %live.id, epoch = live.epoch.0, later = later.0,
            "the store has lost a claim that a worker has seen");
        live.outrank(later);
        in_flight.plan.call.epoch = Some(live.rank());
        Ok(())
    }

    /// Attaches again to a call whose events another reader took, or whose worker knows a `later` owner. `None` if the
    /// session has ended or moved.
    pub(super) async fn reclaim(
        &self,
        in_flight: &mut InFlight,
        seen: u64,
        mut later: Option<Epoch>,
    ) -> Option<Result<RunningCall, CallFailure>> {
        let live = in_flight.live.clone();
        loop {
            let mine = match later {
                Some(later) => self.stands(in_flight, later).await,
                None => self.check_ownership(&live).await,
            };
            match mine {
                Ok(()) => {
                    tracing::debug!(session = %live.id, call = %in_flight.plan.call.id, "takes a call over again");
                    let resuming = self.dispatcher.resume(in_flight.plan.call.clone(), seen);
                    let resumed = tokio::select! {
                        resumed = resuming => resumed,
                        () = live.until_over() => return None,
                    };
                    match resumed {
                        Err(CallFailure::Superseded { epoch }) => later = Some(epoch),
                        resumed => return Some(resumed),
                    }
                }
                Err(_) if live.is_lost() => return None,
                Err(error) => {
                    tracing::debug!(session = %live.id, %error, "cannot ask the store which node owns a call");
                }
            }
            tokio::select! {
                () = sleep(AGAIN) => {}
                () = live.until_over() => return None,
            }
        }
    }
}
