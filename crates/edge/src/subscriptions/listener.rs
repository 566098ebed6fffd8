use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use shoal_ports::Principal;
use shoal_protocol::{Method, RawJson};

use super::filter::SubscriptionFilter;

const LIST_METHODS: [Method; 3] = [
    Method::ToolsListChanged,
    Method::ResourcesListChanged,
    Method::PromptsListChanged,
];

pub(crate) struct SubscriptionListener {
    principal: Principal,
    /// Whether the listener asked for changes of each list, in the order of
    /// [`ServerFacts::versions`](shoal_ports::ServerFacts).
    lists: [bool; 3],
    uris: Vec<Arc<str>>,
    max_updates: usize,
    waiting: Mutex<PendingNews>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct PendingNews {
    lists: [bool; 3],
    updates: VecDeque<(Box<str>, Option<RawJson>)>,
    cut: bool,
}

pub(crate) enum ListenerNews {
    List(Method),
    Resource(Box<str>, Option<RawJson>),
}

impl SubscriptionListener {
    pub(super) fn new(
        principal: Principal,
        filter: &SubscriptionFilter,
        uris: Vec<Arc<str>>,
        max_updates: usize,
    ) -> Self {
        Self {
            principal,
            lists: [
                filter.tools_list_changed,
                filter.resources_list_changed,
                filter.prompts_list_changed,
            ],
            uris,
            max_updates,
            waiting: Mutex::default(),
            waker: AtomicWaker::new(),
        }
    }

    pub(super) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(super) fn uris(&self) -> impl Iterator<Item = &str> {
        self.uris.iter().map(|uri| &**uri)
    }

    pub(super) fn lists_changed(&self, changed: [bool; 3]) {
        let mut waiting = self.waiting.lock();
        for (list, changed) in changed.into_iter().enumerate() {
            waiting.lists[list] |= changed && self.lists[list];
        }
        drop(waiting);
        self.waker.wake();
    }

    /// Cuts the stream if too many updates wait, because the client does not read.
    pub(super) fn resource_updated(&self, uri: &str, params: Option<&RawJson>) {
        let mut waiting = self.waiting.lock();
        let known = waiting
            .updates
            .iter()
            .position(|(other, _)| **other == *uri);
        match known {
            Some(at) => waiting.updates[at].1 = params.cloned(),
            None if waiting.updates.len() < self.max_updates => {
                waiting.updates.push_back((uri.into(), params.cloned()));
            }
            None => {
                waiting.updates = VecDeque::new();
                waiting.cut = true;
            }
        }
        drop(waiting);
        self.waker.wake();
    }

    pub(super) fn cut(&self) {
        self.waiting.lock().cut = true;
        self.waker.wake();
    }

    pub(crate) fn poll_news(&self, cx: &mut Context<'_>) -> Poll<Option<ListenerNews>> {
        // Registered first, so that concurrent news wakes the task.
        self.waker.register(cx.waker());
        let mut waiting = self.waiting.lock();
        if waiting.cut {
            return Poll::Ready(None);
        }
        if let Some(list) = waiting.lists.iter().position(|changed| *changed) {
            waiting.lists[list] = false;
            return Poll::Ready(Some(ListenerNews::List(LIST_METHODS[list].clone())));
        }
        match waiting.updates.pop_front() {
            Some((uri, params)) => Poll::Ready(Some(ListenerNews::Resource(uri, params))),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll};

    use shoal_ports::Principal;
    use shoal_protocol::RawJson;

    use super::{ListenerNews, SubscriptionListener};
    use crate::subscriptions::SubscriptionFilter;

    fn listener(max_updates: usize) -> SubscriptionListener {
        let filter = SubscriptionFilter {
            tools_list_changed: true,
            ..SubscriptionFilter::default()
        };
        SubscriptionListener::new(
            Principal::anonymous(),
            &filter,
            vec!["a".into(), "b".into()],
            max_updates,
        )
    }

    fn next(listener: &SubscriptionListener) -> Option<String> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        match listener.poll_news(&mut cx) {
            Poll::Ready(Some(ListenerNews::List(method))) => Some(method.to_string()),
            Poll::Ready(Some(ListenerNews::Resource(uri, params))) => Some(format!(
                "{uri} {}",
                params.map_or(String::new(), |p| p.as_str().to_owned())
            )),
            Poll::Ready(None) => Some("cut".into()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn what_waits_is_told_once_and_newest() {
        let listener = listener(2);
        listener.lists_changed([true, true, true]);
        listener.lists_changed([true, false, false]);
        listener.resource_updated("a", Some(&RawJson::from_static("1")));
        listener.resource_updated("b", None);
        listener.resource_updated("a", Some(&RawJson::from_static("2")));
        assert_eq!(next(&listener).unwrap(), "notifications/tools/list_changed");
        assert_eq!(next(&listener).unwrap(), "a 2");
        assert_eq!(next(&listener).unwrap(), "b ");
        assert_eq!(next(&listener), None);
    }

    #[test]
    fn a_client_that_does_not_read_is_cut() {
        let listener = listener(1);
        listener.resource_updated("a", None);
        listener.resource_updated("b", None);
        assert_eq!(next(&listener).unwrap(), "cut");
        assert!(listener.waiting.lock().updates.is_empty());
    }
}
