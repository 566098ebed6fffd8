use shoal_ports::ResourceUpdated;
use shoal_protocol::RawJson;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;

use super::JoinDrive;
use crate::convert::catalog::{announcement_out, load_out, own_lists_out};
use crate::proto::worker::v1 as wire;
use crate::proto::worker::v1::worker_frame::Frame as WorkerKind;

impl JoinDrive<'_> {
    pub(super) fn announce(&self) {
        let draining = self.leave.borrow().is_some() || self.flights.parted;
        let said = announcement_out(&self.announcement.borrow(), draining);
        let (pool, draining) = (said.pool.clone(), said.draining);
        if let Err(too_long) = self.outbox.push(0, WorkerKind::Announce(said)) {
            tracing::error!(pool, %too_long, "a catalog does not fit on a link");
            let said = wire::Announce {
                pool,
                catalog: None,
                detail: Some(format!(
                    "the catalog does not fit on a link: {too_long}; offer fewer tools (an OpenAPI document's by \
                     tools.allow, tags or paths), or raise limits.body_bytes on all nodes"
                )),
                draining,
            };
            self.flights.say(WorkerKind::Announce(said));
        }
    }

    pub(super) fn report(&mut self) {
        let worker = &self.flights.joining.worker;
        let (load, ledger) = (worker.load(), worker.ledger());
        if self.reported.replace((load, ledger)) != Some((load, ledger)) {
            self.outbox
                .push_now(WorkerKind::Load(load_out(load, ledger)));
        }
    }

    /// Reports at first all owners, later the changed ones.
    pub(super) fn tell_own_lists(&mut self) {
        let now = self.own_lists.borrow_and_update().clone();
        let told = self.told_own_lists.replace(now.clone());
        // An empty report matters only if an earlier link reported owners, because the node keeps these until the next
        // report.
        if told.is_none() && now.is_empty() && !self.chores.has_told_own_lists {
            return;
        }
        self.chores.has_told_own_lists = true;
        for frame in own_lists_out(told.as_ref(), &now) {
            self.flights.say(WorkerKind::OwnLists(frame));
        }
    }

    pub(super) fn tell(&self, update: Result<ResourceUpdated, BroadcastStreamRecvError>) {
        let subscribed = self.chores.subscribed();
        match update {
            Ok(ResourceUpdated { uri, params }) if subscribed.contains(&uri) => {
                self.push_update(uri, params);
            }
            Err(BroadcastStreamRecvError::Lagged(_)) => {
                for uri in subscribed {
                    let params = RawJson::of(&serde_json::json!({ "uri": uri }));
                    self.push_update(uri.clone(), params);
                }
            }
            Ok(_) => {}
        }
    }

    fn push_update(&self, uri: String, params: RawJson) {
        // Updates are best effort: a later read gets the newest version.
        if !self.outbox.is_full() {
            let params = params.into_bytes();
            self.flights
                .say(WorkerKind::ResourceUpdated(wire::ResourceUpdated {
                    uri,
                    params,
                }));
        }
    }
}
