use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::sleep;

use super::Edge;

const EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct Rotation {
    places: Vec<Place>,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Place {
    edge: Edge,
    ready: AtomicBool,
}

impl Place {
    async fn look(&self) {
        if let Some(admin) = &self.edge.admin {
            self.ready.store(admin.is_ready().await, Ordering::Relaxed);
        }
    }
}

impl Rotation {
    pub(super) fn new(edges: Vec<Edge>) -> Self {
        let places = edges.into_iter().map(|edge| Place {
            edge,
            ready: AtomicBool::new(true),
        });
        Self {
            places: places.collect(),
            next: AtomicUsize::new(0),
        }
    }

    pub(super) fn turn(&self) -> impl Iterator<Item = &Edge> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.places.len();
        let all = (0..count).map(move |place| &self.places[(first + place) % count]);
        let (ready, rest): (Vec<_>, Vec<_>) =
            all.partition(|place| place.ready.load(Ordering::Relaxed));
        ready.into_iter().chain(rest).map(|place| &place.edge)
    }

    pub(super) async fn watch(&self) {
        loop {
            join_all(self.places.iter().map(Place::look)).await;
            sleep(EVERY).await;
        }
    }
}
