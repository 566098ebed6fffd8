//! What the parts of a process tell each other, and what they hear of other processes.
//!
//! What workers report of resources reaches each node over its own links to them, so it stays here. Who watches a task may be at
//! another node than its owner, so news of tasks goes by way of the store.

use std::sync::Arc;

use async_trait::async_trait;
use shoal_ports::memory::MemoryBus;
use shoal_ports::{Bus, BusEvent, BusSubscription, StoreError};
use tokio_util::task::AbortOnDropHandle;

/// The bus of a process.
pub(crate) struct News {
    here: Arc<MemoryBus>,
    everywhere: Arc<dyn Bus>,
    _listening: AbortOnDropHandle<()>,
}

impl News {
    /// Of a process whose workers tell `here`, and whose store carries `everywhere`.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub(crate) fn new(here: Arc<MemoryBus>, everywhere: Arc<dyn Bus>) -> Self {
        let listening = pass_on(everywhere.subscribe(), Arc::clone(&here));
        Self {
            here,
            everywhere,
            _listening: AbortOnDropHandle::new(tokio::spawn(listening)),
        }
    }
}

/// Tells here which tasks have changed anywhere. What is missed is found all the same: who watches a task looks now and then.
async fn pass_on(mut news: BusSubscription, here: Arc<MemoryBus>) {
    while let Some(heard) = news.next().await {
        if let Ok(event @ BusEvent::TaskChanged { .. }) = heard {
            let _ = here.publish(event).await;
        }
    }
}

#[async_trait]
impl Bus for News {
    async fn publish(&self, event: BusEvent) -> Result<(), StoreError> {
        match event {
            BusEvent::TaskChanged { .. } => self.everywhere.publish(event).await,
            BusEvent::ResourceUpdated { .. } | BusEvent::NodeLeft { .. } => {
                self.here.publish(event).await
            }
        }
    }

    fn subscribe(&self) -> BusSubscription {
        self.here.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shoal_ports::memory::MemoryBus;
    use shoal_ports::{Bus as _, BusEvent, NodeId, SessionId};
    use shoal_protocol::RawJson;

    use super::News;

    #[tokio::test]
    async fn news_of_tasks_reaches_every_process_and_news_of_resources_this_one() {
        let store = Arc::new(MemoryBus::default());
        let [one, other] = [(); 2].map(|()| News::new(Arc::default(), store.clone()));
        let mut heard = [one.subscribe(), other.subscribe()];
        let updated = BusEvent::ResourceUpdated {
            uri: "demo://counter".to_owned(),
            params: RawJson::from_static("{}"),
        };
        let task = SessionId::of_task_opened_by(&NodeId::new("n"));
        let changed = BusEvent::TaskChanged { task };
        one.publish(updated.clone()).await.unwrap();
        one.publish(changed.clone()).await.unwrap();
        assert_eq!(heard[0].next().await, Some(Ok(updated)));
        for heard in &mut heard {
            assert_eq!(heard.next().await, Some(Ok(changed.clone())));
        }
    }
}
