use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_ports::{
    Epoch, Listing, Principal, SessionDetail, SessionId, SessionRef, SessionReport,
    SessionTransport, StreamReport, mark_of, shown,
};
use shoal_protocol::{RawJson, StreamId};
use shoal_telemetry::metrics::EndReason;

use super::{Node, Passive, SessionFacts, Sessions};
use crate::live::LiveSession;
use crate::streams::Tail;

const MOST_SHOWN: usize = 100;
const LONGEST_URI: usize = 256;
const ENDED: &str = "the session was ended by an operator";

impl Sessions {
    /// Lists the node's sessions; see [`Inspector::sessions`](shoal_ports::Inspector::sessions). Scans all sessions.
    pub fn list(&self, filter: &str, limit: usize) -> Listing<SessionReport> {
        self.node.list(filter, limit)
    }

    /// Reports on one session, without its calls and without waking it. `None` if this node does
    /// not own it.
    pub async fn detail(&self, session: &SessionId) -> Option<SessionDetail> {
        self.node.detail(session).await
    }

    /// Ends a session and stops its calls. Returns `false` if this node does not own it.
    ///
    /// # Cancel safety
    /// The session ends even if the future is dropped.
    pub async fn end(&self, session: &SessionId) -> bool {
        let (node, session) = (self.node.clone(), session.clone());
        let ending = tokio::spawn(async move { node.end_for_operator(&session).await });
        ending.await.unwrap_or(false)
    }
}

struct InspectedSession<'a> {
    id: &'a SessionId,
    principal: &'a Principal,
    about: &'a SessionFacts,
    epoch: Epoch,
    last_used: u64,
    live: Option<&'a LiveSession>,
}

impl Node {
    fn list(&self, filter: &str, limit: usize) -> Listing<SessionReport> {
        let filter = SearchFilter::of(filter);
        let mut found: Vec<(Reverse<u64>, SessionId)> = Vec::new();
        for live in self.all_live().iter().filter(|live| !live.is_lost()) {
            let about = live.about();
            let known = InspectedSession::of_live(live, &about);
            if filter.passes(&known) {
                found.push((Reverse(known.last_used), live.id.clone()));
            }
        }
        found.extend(self.table.of_passive(|id, passive| {
            let passes = filter.passes(&InspectedSession::of_passive(id, passive));
            passes.then(|| (Reverse(passive.last_used), id.clone()))
        }));
        let total = found.len();
        if limit < total {
            found.select_nth_unstable(limit);
            found.truncate(limit);
        }
        found.sort_unstable();
        let items = found.iter().filter_map(|(_, id)| self.report(id));
        Listing {
            items: items.collect(),
            total,
        }
    }

    fn report(&self, session: &SessionId) -> Option<SessionReport> {
        if let Some(live) = self.live(session) {
            let about = live.about();
            return Some(InspectedSession::of_live(&live, &about).report(self.now()));
        }
        let now = self.now();
        let report =
            |passive: &mut Passive| InspectedSession::of_passive(session, passive).report(now);
        self.table.passive(session, report)
    }

    async fn detail(&self, session: &SessionId) -> Option<SessionDetail> {
        let report = self.report(session)?;
        let mut detail = SessionDetail {
            session: report,
            log_level: None,
            subscriptions: Vec::new(),
            subscriptions_total: 0,
            streams: Vec::new(),
            calls: Vec::new(),
        };
        if let Some(live) = self.live(session) {
            let open = live.streams.open();
            detail.streams = open.iter().take(MOST_SHOWN).map(stream).collect();
            live.read(|record| {
                detail.log_level = RawJson::of(&record.log_level).string();
                detail.subscribed_to(record.subscriptions.iter());
            });
        } else {
            let subscribed = |it: &mut Passive| detail.subscribed_to(it.subscriptions.iter());
            let _ = self.table.passive(session, subscribed);
        }
        Some(detail)
    }

    async fn end_for_operator(self: &Arc<Self>, session: &SessionId) -> bool {
        let principal = match self.live(session) {
            Some(live) => Some(live.principal.clone()),
            None => self.table.passive(session, |it| it.principal.clone()),
        };
        let Some(principal) = principal else {
            return false;
        };
        let to = SessionRef::new(session.clone(), principal);
        self.find(&to).await.is_ok() && self.end_if_here(&to, EndReason::Operator, ENDED).await
    }
}

trait Subscribed {
    fn subscribed_to<'a>(&mut self, uris: impl ExactSizeIterator<Item = &'a String>);
}

impl Subscribed for SessionDetail {
    fn subscribed_to<'a>(&mut self, uris: impl ExactSizeIterator<Item = &'a String>) {
        self.subscriptions_total = uris.len();
        let uris = uris.take(MOST_SHOWN).map(|uri| shown(uri, LONGEST_URI));
        self.subscriptions = uris.collect();
    }
}

impl<'a> InspectedSession<'a> {
    fn of_live(live: &'a Arc<LiveSession>, about: &'a SessionFacts) -> Self {
        Self {
            id: &live.id,
            principal: &live.principal,
            about,
            epoch: live.epoch,
            last_used: live.last_used.load(Ordering::Relaxed),
            live: Some(live),
        }
    }

    fn of_passive(id: &'a SessionId, passive: &'a Passive) -> Self {
        Self {
            id,
            principal: &passive.principal,
            about: &passive.about,
            epoch: passive.epoch,
            last_used: passive.last_used,
            live: None,
        }
    }

    fn task(&self) -> Option<&'static str> {
        match self.live {
            Some(live) => live.task_status(),
            None => self.id.is_task().then_some("ended"),
        }
    }

    fn report(&self, now: u64) -> SessionReport {
        let in_flight = |live: &LiveSession| live.held();
        SessionReport {
            id: self.id.to_string(),
            principal: mark_of(self.principal),
            client: self.about.client.as_deref().map(str::to_owned),
            revision: self.about.revision.map(|it| it.as_str().to_owned()),
            single_stream: self.about.transport == SessionTransport::SingleStream,
            live: self.live.is_some(),
            task: self.task().map(str::to_owned),
            in_flight: self.live.map_or(0, in_flight),
            streams: self.live.map_or(0, |live| live.streams.count()),
            streams_read: self.live.map_or(0, read_streams),
            idle_ms: now.saturating_sub(self.last_used),
            epoch: self.epoch.0,
        }
    }
}

struct SearchFilter<'a> {
    exact: &'a str,
    lower: String,
}

impl<'a> SearchFilter<'a> {
    fn of(filter: &'a str) -> Self {
        let exact = filter.trim();
        Self {
            exact,
            lower: exact.to_lowercase(),
        }
    }

    fn passes(&self, known: &InspectedSession<'_>) -> bool {
        let lower = self.lower.as_str();
        lower.is_empty()
            || known.id.as_str().contains(lower)
            || known.principal.as_str() == self.exact
            || known
                .about
                .revision
                .is_some_and(|it| it.as_str().contains(lower))
            || known
                .about
                .client
                .as_ref()
                .is_some_and(|it| it.to_lowercase().contains(lower))
            || known.task().is_some_and(|status| status.contains(lower))
            || mark_of(known.principal).contains(lower)
    }
}

fn read_streams(live: &LiveSession) -> usize {
    let open = live.streams.open();
    open.iter().filter(|tail| tail.is_read()).count()
}

fn stream(tail: &Arc<Tail>) -> StreamReport {
    StreamReport {
        last: tail.last().to_string(),
        standalone: tail.stream() == StreamId::STANDALONE,
        read: tail.is_read(),
    }
}
