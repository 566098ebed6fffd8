//! A worker that has heard of a later owner of the session: the store says whose it is.

use shoal_ports::{CallFailure, Epoch, GatewayError, RunningCall};
use tokio::time::sleep;

use super::journaled::AGAIN;
use super::{CallDriver, InFlight};
use crate::actor::record::Step;
use crate::live::store_failed;

impl CallDriver {
    /// Whether the session of a call is this node's after all, though its worker has heard of a later owner: then the store
    /// has lost that one's claim, and the call may be tried again, with an epoch that counts for more.
    ///
    /// # Errors
    /// `Moved` where the session is another node's. What the store says where it cannot tell.
    pub(super) async fn stands(
        &self,
        in_flight: &mut InFlight,
        later: Epoch,
    ) -> Result<(), GatewayError> {
        let live = &in_flight.live;
        self.check_ownership(live).await?;
        // If the claim that was lost is this node's own, the store has it again; if it is another one's, whoever says it first
        // has the session.
        let entered = live.write_record(Step::Restore).await;
        entered.map_err(|error| store_failed(&error, &self.config))?;
        tracing::warn!(session = %live.id, epoch = live.epoch.0, later = later.0,
            "the store has lost a claim that a worker knows of");
        live.outrank(later);
        in_flight.plan.call.epoch = Some(live.rank());
        Ok(())
    }

    /// Goes on with a call that another reader has taken, or whose worker has heard of a `later` owner: a former owner of
    /// the session that does not know yet that it is one, or the next one. That is no outcome; the store says whose the call
    /// is. `None` where the session is over here: ended, or another node's, and the call with it.
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
                    tracing::debug!(session = %live.id, call = %in_flight.plan.call.id, "takes a call back");
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
                    tracing::debug!(session = %live.id, %error, "cannot ask whose a call is");
                }
            }
            tokio::select! {
                () = sleep(AGAIN) => {}
                () = live.until_over() => return None,
            }
        }
    }
}
