//! What a session tells its client unasked: changed lists and updated resources.
//!
//! Both are conflated: while nobody listens, a session only remembers *that* something changed.

use bytes::Bytes;
use shoal_protocol::{Method, RawJson, notification};

use super::{Effect, SessionState};

const LISTS: [Method; 3] = [
    Method::ToolsListChanged,
    Method::ResourcesListChanged,
    Method::PromptsListChanged,
];

impl SessionState {
    pub(super) fn resource_updated(&mut self, uri: String, params: &RawJson) -> Effect {
        if !self.record.subscriptions.contains(&uri) {
            return Effect::None;
        }
        if self.listening {
            let update = notification(Method::ResourceUpdated.as_str(), Some(params));
            return Effect::Announce(vec![update]);
        }
        self.record.updated.insert(uri);
        Effect::None
    }

    pub(super) fn lists_changed(&mut self, versions: [u64; 3]) -> Effect {
        if !self.listening || self.record.handshake.is_none() {
            return Effect::None;
        }
        announce(self.changed_lists(versions))
    }

    pub(super) fn listening(&mut self, now: bool, versions: [u64; 3]) -> Effect {
        self.listening = now;
        if !now || self.record.handshake.is_none() {
            return Effect::None;
        }
        let mut news = self.changed_lists(versions);
        news.extend(
            std::mem::take(&mut self.record.updated)
                .into_iter()
                .map(|uri| {
                    let params = RawJson::of(&serde_json::json!({ "uri": uri }));
                    notification(Method::ResourceUpdated.as_str(), Some(&params))
                }),
        );
        announce(news)
    }

    fn changed_lists(&mut self, versions: [u64; 3]) -> Vec<Bytes> {
        let told = std::mem::replace(&mut self.record.announced, versions);
        LISTS
            .iter()
            .zip(told.iter().zip(versions))
            .filter(|(_, (told, now))| **told != *now)
            .map(|(method, _)| notification(method.as_str(), None))
            .collect()
    }
}

fn announce(news: Vec<Bytes>) -> Effect {
    if news.is_empty() {
        Effect::None
    } else {
        Effect::Announce(news)
    }
}
