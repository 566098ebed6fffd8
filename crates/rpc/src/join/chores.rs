use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use shoal_ports::SessionId;
use shoal_protocol::RpcError;

use super::Joining;
use crate::convert::outcome::error_out;
use crate::proto::worker::v1::Subscribed;

pub(super) struct Chores {
    joining: Arc<Joining>,
    running: FuturesUnordered<BoxFuture<'static, ChoreOutcome>>,
    subscribed: BTreeSet<String>,
    wishes: VecDeque<SubscriptionChange>,
    is_wishing: bool,
    endings: u64,
    pub(super) has_told_own_lists: bool,
}

enum SubscriptionChange {
    Subscribe(u64, String),
    Unsubscribe(String),
}

enum ChoreOutcome {
    Subscribed(u64, String, Result<(), RpcError>, u64),
    Unsubscribed,
    SessionEnded,
}

impl Chores {
    pub(super) fn new(joining: Arc<Joining>) -> Self {
        Self {
            joining,
            running: FuturesUnordered::new(),
            subscribed: BTreeSet::new(),
            wishes: VecDeque::new(),
            is_wishing: false,
            endings: 0,
            has_told_own_lists: false,
        }
    }

    pub(super) fn subscribed(&self) -> &BTreeSet<String> {
        &self.subscribed
    }

    pub(super) fn end_session(&mut self, session: SessionId) {
        let worker = Arc::clone(&self.joining.worker);
        self.running.push(Box::pin(async move {
            worker.end_session(&session).await;
            ChoreOutcome::SessionEnded
        }));
    }

    pub(super) fn subscribe(&mut self, request: u64, uri: String) {
        self.wishes
            .push_back(SubscriptionChange::Subscribe(request, uri));
        self.wish();
    }

    pub(super) fn unsubscribe(&mut self, uri: String) {
        self.wishes.push_back(SubscriptionChange::Unsubscribe(uri));
        self.wish();
    }

    pub(super) fn unsubscribe_all(&mut self) {
        self.endings += 1;
        self.wishes = (self.subscribed.iter().cloned())
            .map(SubscriptionChange::Unsubscribe)
            .collect();
        self.wish();
    }

    fn wish(&mut self) {
        while !self.is_wishing
            && let Some(wish) = self.wishes.pop_front()
        {
            let joining = Arc::clone(&self.joining);
            let endings = self.endings;
            let chore: BoxFuture<'static, ChoreOutcome> = match wish {
                SubscriptionChange::Subscribe(request, uri) if self.subscribed.contains(&uri) => {
                    Box::pin(async move { ChoreOutcome::Subscribed(request, uri, Ok(()), endings) })
                }
                SubscriptionChange::Subscribe(request, uri) => Box::pin(async move {
                    let outcome = joining.subscriptions.add(&joining.worker, &uri).await;
                    ChoreOutcome::Subscribed(request, uri, outcome, endings)
                }),
                SubscriptionChange::Unsubscribe(uri) if self.subscribed.remove(&uri) => {
                    Box::pin(async move {
                        joining.subscriptions.remove(&joining.worker, &uri).await;
                        ChoreOutcome::Unsubscribed
                    })
                }
                SubscriptionChange::Unsubscribe(_) => continue,
            };
            self.is_wishing = true;
            self.running.push(chore);
        }
    }

    /// Returns the answer to a subscription. Pends without chores. Cancellation safe.
    pub(super) async fn next(&mut self) -> Option<Subscribed> {
        let Some(outcome) = self.running.next().await else {
            return std::future::pending().await;
        };
        let (request, uri, outcome, endings) = match outcome {
            ChoreOutcome::SessionEnded => return None,
            ChoreOutcome::Unsubscribed => {
                self.is_wishing = false;
                self.wish();
                return None;
            }
            ChoreOutcome::Subscribed(request, uri, outcome, endings) => {
                (request, uri, outcome, endings)
            }
        };
        self.is_wishing = false;
        if outcome.is_ok() {
            self.subscribed.insert(uri.clone());
            if endings != self.endings {
                self.wishes.push_front(SubscriptionChange::Unsubscribe(uri));
            }
        }
        self.wish();
        Some(Subscribed {
            request,
            error: outcome.err().map(error_out),
        })
    }

    /// Used while there is no link. Cancellation safe.
    pub(super) async fn run(&mut self) {
        loop {
            self.next().await;
        }
    }

    /// Cancellation safe.
    pub(super) async fn finish(&mut self) {
        while !self.running.is_empty() {
            self.next().await;
        }
    }
}
