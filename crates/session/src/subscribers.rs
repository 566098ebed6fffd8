use std::collections::HashSet;

use dashmap::DashMap;
use shoal_ports::SessionId;

#[derive(Default)]
pub(crate) struct Subscribers {
    by_uri: DashMap<String, HashSet<SessionId>>,
}

impl Subscribers {
    pub(crate) fn add(&self, uri: &str, session: &SessionId) {
        self.by_uri
            .entry(uri.to_owned())
            .or_default()
            .insert(session.clone());
    }

    pub(crate) fn remove(&self, uri: &str, session: &SessionId) -> bool {
        let mut was_there = false;
        self.by_uri.remove_if_mut(uri, |_, sessions| {
            was_there = sessions.remove(session);
            sessions.is_empty()
        });
        was_there
    }

    pub(crate) fn has(&self, uri: &str, session: &SessionId) -> bool {
        let sessions = self.by_uri.get(uri);
        sessions.is_some_and(|sessions| sessions.contains(session))
    }

    pub(crate) fn count(&self) -> usize {
        self.by_uri.iter().map(|sessions| sessions.len()).sum()
    }

    pub(crate) fn of(&self, uri: &str) -> Vec<SessionId> {
        self.by_uri
            .get(uri)
            .map(|sessions| sessions.iter().cloned().collect())
            .unwrap_or_default()
    }

    pub(crate) fn all_uris(&self) -> Vec<String> {
        self.by_uri
            .iter()
            .map(|entry| entry.key().clone())
            .collect()
    }
}
