use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::Principal;
use tokio::sync::watch;
use tokio::time::Instant;

use super::known::KnownLists;
use super::sight::{OwnSight, Viewer};

/// Maximum bytes for all callers.
const ALL: usize = 128 << 20;
/// Maximum bytes for one principal. Not applied without authentication, because all callers are then one principal.
pub(super) const OF_PRINCIPAL: usize = 32 << 20;
const IDLE: Duration = Duration::from_secs(600);
const EACH: usize = 512;

#[derive(Default)]
pub(crate) struct OwnViews(Mutex<HashMap<Viewer, ViewSlot>>);

struct ViewSlot {
    known: Option<Arc<KnownLists>>,
    bytes: usize,
    /// Closes once the open request for these lists is answered.
    asking: Option<watch::Receiver<()>>,
    used: Instant,
}

impl ViewSlot {
    fn new() -> Self {
        Self {
            known: None,
            bytes: EACH,
            asking: None,
            used: Instant::now(),
        }
    }
}

impl OwnViews {
    /// The lists may be outdated.
    pub(super) fn last(&self, viewer: &Viewer) -> Option<Arc<KnownLists>> {
        self.0.lock().get(viewer)?.known.clone()
    }

    pub(super) fn known(&self, sight: &OwnSight) -> Option<Arc<KnownLists>> {
        let mut views = self.0.lock();
        let slot = views.get_mut(&sight.viewer)?;
        slot.used = Instant::now();
        slot.known.clone().filter(|known| known.fits(sight))
    }

    /// The receiver closes when `ask` drops the sender, because the lists are then known.
    pub(super) fn asking(
        &self,
        viewer: &Viewer,
        ask: impl FnOnce(watch::Sender<()>),
    ) -> watch::Receiver<()> {
        let mut views = self.0.lock();
        let slot = views.entry(viewer.clone()).or_insert_with(ViewSlot::new);
        slot.used = Instant::now();
        let asks = |asking: &&watch::Receiver<()>| asking.has_changed().is_ok();
        if let Some(asking) = slot.asking.as_ref().filter(asks) {
            return asking.clone();
        }
        let (sender, asking) = watch::channel(());
        slot.asking = Some(asking.clone());
        drop(views);
        ask(sender);
        asking
    }

    /// If the lists exceed a limit, removes other entries, first of the same principal.
    pub(super) fn keep(&self, viewer: &Viewer, known: Arc<KnownLists>) {
        let bytes = known.bytes() + EACH;
        let mut views = self.0.lock();
        let slot = views.entry(viewer.clone()).or_insert_with(ViewSlot::new);
        (slot.known, slot.bytes, slot.used) = (Some(known), bytes, Instant::now());
        views.retain(|_, slot| slot.used.elapsed() < IDLE);
        if viewer.principal != Principal::anonymous() {
            let own = |other: &Viewer| other.principal == viewer.principal;
            make_room(&mut views, viewer, OF_PRINCIPAL, own);
        }
        make_room(&mut views, viewer, ALL, |_| true);
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        let views = self.0.lock();
        (views.len(), views.values().map(|slot| slot.bytes).sum())
    }
}

fn make_room(
    views: &mut HashMap<Viewer, ViewSlot>,
    newest: &Viewer,
    most: usize,
    among: impl Fn(&Viewer) -> bool,
) {
    let of = views.iter().filter(|(viewer, _)| among(viewer));
    let mut bytes: usize = of.map(|(_, slot)| slot.bytes).sum();
    if bytes <= most {
        return;
    }
    let others = views.iter();
    let others = others.filter(|(viewer, _)| among(viewer) && *viewer != newest);
    let mut others: Vec<_> = others.map(|(it, slot)| (slot.used, it.clone())).collect();
    others.sort_by_key(|(used, _)| *used);
    for (_, viewer) in others {
        if bytes <= most {
            return;
        }
        bytes -= views.remove(&viewer).map_or(0, |slot| slot.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use shoal_ports::{Caller, ForwardedHeaders, PoolCatalog, Principal};
    use shoal_protocol::{RawJson, Revision};
    use tokio::time::Instant;

    use super::super::known::{KnownLists, ListAnswer};
    use super::super::sight::{OwnPools, OwnSight};
    use super::{ALL, IDLE, OF_PRINCIPAL, OwnViews};

    fn sight(principal: &str, token: usize) -> OwnSight {
        let mut own = OwnPools::default();
        own.add_pool(&"p".into(), &["t".into()]);
        let header = ("t".into(), token.to_string().into());
        let caller = Caller {
            principal: Principal::new(principal),
            session: None,
            revision: Revision::LATEST,
            client_info: None,
            capabilities: RawJson::from_static("{}"),
            headers: ForwardedHeaders::new([header]),
            grant: None,
        };
        own.sight(&caller).unwrap()
    }

    fn keep(views: &OwnViews, principal: &str, token: usize, bytes: usize) {
        let text = format!("\"{}\"", "x".repeat(bytes));
        let source = PoolCatalog {
            tools: vec![RawJson::parse_text(text.into()).unwrap()],
            ..PoolCatalog::default()
        };
        let answer = ListAnswer {
            pool: "p".into(),
            numbers: [0; 3],
            source: Arc::new(source),
            missing: Default::default(),
            was_vacant: false,
            read: Instant::now(),
        };
        let known = KnownLists::new(vec![Arc::new(answer)]);
        views.keep(&sight(principal, token).viewer, Arc::new(known));
    }

    #[tokio::test(start_paused = true)]
    async fn one_principal_pushes_out_its_own_and_all_have_a_limit() {
        let views = OwnViews::default();
        keep(&views, "bob", 0, 1 << 20);
        for token in 0..100 {
            tokio::time::advance(Duration::from_millis(1)).await;
            keep(&views, "alice", token, 1 << 20);
        }
        let (count, bytes) = views.size();
        assert!(
            count < 20 && bytes <= OF_PRINCIPAL + (4 << 20),
            "{count}, {bytes}"
        );
        assert!(views.known(&sight("bob", 0)).is_some());
        assert!(views.known(&sight("alice", 99)).is_some());
        assert!(views.known(&sight("alice", 0)).is_none());
        for principal in 0..100 {
            keep(&views, &principal.to_string(), 0, 4 << 20);
        }
        assert!(views.size().1 <= ALL);
        tokio::time::advance(2 * IDLE).await;
        keep(&views, "carol", 0, 1);
        assert_eq!(views.size().0, 1);
    }

    #[tokio::test]
    async fn a_question_is_asked_once_at_a_time() {
        let views = OwnViews::default();
        let viewer = sight("alice", 0).viewer;
        let mut asker = None;
        let mut first = views.asking(&viewer, |sender| asker = Some(sender));
        let mut second = views.asking(&viewer, |_| panic!("it is being asked"));
        drop(asker);
        assert!(first.changed().await.is_err() && second.changed().await.is_err());
        let mut again = false;
        drop(views.asking(&viewer, |_| again = true));
        assert!(again);
    }
}
