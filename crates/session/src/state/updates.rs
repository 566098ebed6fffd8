//! Changes of lists and resources. Without a listener, a session remembers only *that* they changed.
//!
//! While a client listens, a changed list is not recorded: Shoal tells the listener directly, and `announced` stays.
//! So a client that listens again gets the news through the log, unless it has fetched the list.

use bytes::Bytes;
use shoal_ports::ServerFacts;
use shoal_protocol::{Method, RawJson, RawObject, Request, notification};

use super::{Effect, SessionMachine};

const LISTS: [Method; 3] = [
    Method::ToolsListChanged,
    Method::ResourcesListChanged,
    Method::PromptsListChanged,
];

/// Messages to log on the standalone stream.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub(crate) lists: Vec<Bytes>,
    /// The client knows these versions once `lists` are logged.
    pub(crate) versions: [u64; 3],
    pub(crate) resources: Vec<Bytes>,
    pub(crate) updated: Vec<String>,
}

impl SessionMachine {
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

    /// Returns the news to log, because the new listener may not know it.
    pub(super) fn listening(&mut self, reader: u64, facts: &ServerFacts) -> Effect {
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

    pub(super) fn left(&mut self, reader: u64) {
        if self.listener == Some(reader) {
            self.listener = None;
        }
    }

    pub(super) fn announced(&mut self, versions: [u64; 3]) {
        self.record.announced = versions;
    }

    pub(super) fn unannounced(&mut self, resources: Vec<String>) {
        let subscriptions = &self.record.subscriptions;
        let wanted = resources
            .into_iter()
            .filter(|uri| subscriptions.contains(uri));
        self.record.updated.extend(wanted);
    }

    pub(super) fn asked_for_list(&mut self, list: usize, facts: &ServerFacts) {
        self.record.announced[list] = self.versions(facts)[list];
    }

    pub(super) fn versions(&self, facts: &ServerFacts) -> [u64; 3] {
        facts.versions_of(Some(&self.session), self.principal())
    }
}

/// Resources are excluded, because their notification covers two lists.
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
