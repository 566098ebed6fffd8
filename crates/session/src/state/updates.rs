//! What a session tells its client unasked: changed lists and updated resources.
//!
//! Both are conflated: while nobody listens, a session only remembers *that* something changed.
//!
//! A changed list costs an idle session no write: whoever listens is told in passing, and the record's
//! `announced` stays what it was. So a client whose connection broke, or whose session has moved, is told
//! again when it listens again; then as an event of the log, which answers for it from there on. A client
//! that has asked for the list meanwhile knows, and is not told again.

use bytes::Bytes;
use shoal_ports::ServerFacts;
use shoal_protocol::{Method, RawJson, RawObject, Request, notification};

use super::{Effect, SessionState};

const LISTS: [Method; 3] = [
    Method::ToolsListChanged,
    Method::ResourcesListChanged,
    Method::PromptsListChanged,
];

/// What the standalone stream gets through the log.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Lists that changed.
    pub(crate) lists: Vec<Bytes>,
    /// The versions of the lists, which the client knows once `lists` are in the log.
    pub(crate) versions: [u64; 3],
    /// Subscribed resources that changed.
    pub(crate) resources: Vec<Bytes>,
    /// Their URIs.
    pub(crate) updated: Vec<String>,
}

impl SessionState {
    pub(super) fn resource_updated(&mut self, uri: String, params: &RawJson) -> Effect {
        if !self.record.subscriptions.contains(&uri) {
            return Effect::None;
        }
        if self.listener.is_some() {
            let update = notification(Method::ResourceUpdated.as_str(), Some(params));
            return Effect::Announce(News {
                resources: vec![update],
                updated: vec![uri],
                ..News::default()
            });
        }
        self.record.updated.insert(uri);
        Effect::None
    }

    /// The lists may have changed: whoever listens is told in passing.
    pub(super) fn lists_changed(&mut self, facts: &ServerFacts) -> Effect {
        if self.listener.is_none() || self.record.handshake.is_none() {
            return Effect::None;
        }
        let versions = self.versions(facts);
        let news = changed(self.told, versions);
        self.told = versions;
        if news.is_empty() {
            Effect::None
        } else {
            Effect::Pass(news)
        }
    }

    /// Somebody listens from now on: what the client may not know yet is told through the log.
    pub(super) fn listening(&mut self, reader: u64, facts: &ServerFacts) -> Effect {
        // Two connections may come in any order; the stream's reader is the newest.
        self.listener = self.listener.max(Some(reader));
        if self.record.handshake.is_none() {
            return Effect::None;
        }
        let versions = self.versions(facts);
        self.told = versions;
        let updated = Vec::from_iter(std::mem::take(&mut self.record.updated));
        let news = News {
            lists: changed(self.record.announced, versions),
            versions,
            resources: updated
                .iter()
                .map(|uri| {
                    let params = RawJson::of(&serde_json::json!({ "uri": uri }));
                    notification(Method::ResourceUpdated.as_str(), Some(&params))
                })
                .collect(),
            updated,
        };
        if news.lists.is_empty() && news.resources.is_empty() {
            Effect::None
        } else {
            Effect::Announce(news)
        }
    }

    /// A reader has gone; another one may have taken its place.
    pub(super) fn left(&mut self, reader: u64) {
        if self.listener == Some(reader) {
            self.listener = None;
        }
    }

    /// The client has been told of these versions by events of the log.
    pub(super) fn announced(&mut self, versions: [u64; 3]) {
        self.record.announced = versions;
    }

    /// The client has not been told that these resources changed: it is when it listens again.
    pub(super) fn unannounced(&mut self, resources: Vec<String>) {
        let subscriptions = &self.record.subscriptions;
        let wanted = resources
            .into_iter()
            .filter(|uri| subscriptions.contains(uri));
        self.record.updated.extend(wanted);
    }

    /// The client is about to get this list as it is now, or to learn that it does not.
    pub(super) fn asked_for_list(&mut self, list: usize, facts: &ServerFacts) {
        self.record.announced[list] = self.versions(facts)[list];
    }

    /// What the lists are that the client sees.
    pub(super) fn versions(&self, facts: &ServerFacts) -> [u64; 3] {
        facts.versions_of(Some(&self.session), self.principal())
    }
}

/// Which list a request asks for from its beginning, where that is all there is to know of it: resources
/// are two lists with one notification, and asking for one of them says nothing of the other.
pub(super) fn list_of(request: &Request) -> Option<usize> {
    let list = match request.method {
        Method::ToolsList => 0,
        Method::PromptsList => 2,
        _ => return None,
    };
    let params = request.params.as_ref().and_then(RawObject::of);
    let goes_on = params.is_some_and(|params| params.get("cursor").is_some());
    (!goes_on).then_some(list)
}

fn changed(known: [u64; 3], now: [u64; 3]) -> Vec<Bytes> {
    LISTS
        .iter()
        .zip(known.iter().zip(now))
        .filter(|(_, (known, now))| **known != *now)
        .map(|(method, _)| notification(method.as_str(), None))
        .collect()
}
