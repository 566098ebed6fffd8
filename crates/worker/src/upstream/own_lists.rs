use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use shoal_ports::{ListOwner, OwnLists as Told, PoolCatalog};
use shoal_protocol::RawJson;
use tokio::sync::watch;

use super::connection::ServerConnection;
use super::link::ServerLink;
use super::list_call::read_own;
use super::list_pace::ListPace;
use super::lists::{List, Which};

type Digests = [u64; 4];

#[derive(Default)]
pub(crate) struct ServerOwnLists {
    told: watch::Sender<Told>,
    shared: watch::Sender<Digests>,
}

/// Withdrawn on drop.
struct OwnerOf<'a> {
    own: &'a ServerOwnLists,
    owner: ListOwner,
    told: [u64; 3],
}

impl ServerOwnLists {
    pub(crate) fn watch(&self) -> watch::Receiver<Told> {
        self.told.subscribe()
    }

    pub(crate) fn set_shared(&self, catalog: &PoolCatalog) {
        let now = List::ALL.map(|list| digest(list.of(catalog)));
        self.shared
            .send_if_modified(|digests| std::mem::replace(digests, now) != now);
    }

    pub(crate) fn follow(self: &Arc<Self>, connection: &ServerConnection, owner: ListOwner) {
        let (own, link, over) = (self.clone(), connection.link.clone(), connection.over());
        // Ignores possibly missed changes: a broken stream is no reason to read every session's lists.
        let pace = ListPace::from_the_start(link.announced());
        tokio::spawn(async move {
            tokio::select! {
                () = own.stay_with(&link, pace, owner) => {}
                () = over.cancelled() => {}
            }
        });
    }

    /// Follows a connection's lists. Reads announced lists before it reports them, because some announcements
    /// report no change.
    async fn stay_with(&self, link: &Arc<ServerLink>, mut pace: ListPace, owner: ListOwner) {
        let mut owner = OwnerOf {
            own: self,
            owner,
            told: [0; 3],
        };
        let mut shared = self.shared.subscribe();
        let mut known = [None; 4];
        loop {
            let which = tokio::select! {
                which = pace.due() => which,
                Ok(()) = shared.changed() => Which::default(),
            };
            if !which.is_empty() {
                let before = known;
                let missing = read(link, which, &mut known).await;
                pace.was_read(known != before, missing);
            }
            owner.tell(differences(&known, &shared.borrow_and_update()));
        }
    }
}

async fn read(link: &Arc<ServerLink>, which: Which, known: &mut [Option<u64>; 4]) -> Which {
    let mut missing = Which::default();
    for list in List::ALL.into_iter().filter(|list| which.has(*list)) {
        match read_own(link, list).await {
            Ok(items) => known[list as usize] = Some(digest(&items)),
            Err(error) => {
                tracing::debug!(target: "shoal::upstream", server = link.name(), ?list, %error, "a list of one caller cannot be read");
                missing = missing.with(list);
            }
        }
    }
    missing
}

/// Digests of the owner's tools, resources with templates, and prompts; 0 if equal to everyone's.
fn differences(known: &[Option<u64>; 4], shared: &Digests) -> [u64; 3] {
    let mut numbers = [0_u64; 3];
    for list in List::ALL {
        let at = list as usize;
        if let Some(own) = known[at].filter(|own| *own != shared[at]) {
            // Sets the lowest bit, because 0 means "no difference".
            let number = &mut numbers[list.kind()];
            *number = number.rotate_left(1).wrapping_add(own) | 1;
        }
    }
    numbers
}

impl OwnerOf<'_> {
    fn tell(&mut self, numbers: [u64; 3]) {
        let before = std::mem::replace(&mut self.told, numbers);
        if before == numbers {
            return;
        }
        self.own.told.send_if_modified(|told| {
            // Another connection of the same owner may have reported since.
            let is_own = told.get(&self.owner).is_none_or(|told| *told == before);
            match numbers {
                [0, 0, 0] if is_own => drop(Arc::make_mut(told).remove(&self.owner)),
                [0, 0, 0] => return false,
                numbers => drop(Arc::make_mut(told).insert(self.owner.clone(), numbers)),
            }
            true
        });
    }
}

impl Drop for OwnerOf<'_> {
    fn drop(&mut self) {
        self.tell([0; 3]);
    }
}

fn digest(items: &[RawJson]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for item in items {
        item.as_bytes().hash(&mut hasher);
    }
    hasher.finish()
}
