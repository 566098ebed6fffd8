use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, Weak};
use std::time::Duration;

use futures::future::join_all;
use rand::seq::SliceRandom as _;
use shoal_cluster::{Members, WorkerJoins};
use shoal_ports::NodeInfo;
use shoal_rpc::{Distrusted, LinkConfig, PeerTrust, Tls, look_for};
use tokio::time::sleep;

/// One success is enough.
const AT_ONCE: usize = 4;
/// While no peer completes TLS, and afterwards.
const ROUNDS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(5)];
const NAMED: usize = 3;

/// Dials peers, and judges by the TLS handshakes whether they accept this process. Ignores handshakes on the listener,
/// where anyone could cause failures and so make the process unready.
pub(super) struct PeerCheck {
    tls: Tls,
    links: LinkConfig,
    members: Option<Members>,
    joins: OnceLock<Weak<WorkerJoins>>,
    asked: AtomicBool,
}

pub(super) enum PeerVerdict {
    Good,
    Unasked,
    Partly(String),
    CutOff(String),
}

impl PeerCheck {
    pub(super) fn new(links: &LinkConfig, members: Option<Members>) -> Option<Self> {
        Some(Self {
            tls: links.tls.clone()?,
            links: links.clone(),
            // A process without members only has workers, whose links dial by themselves.
            asked: AtomicBool::new(members.is_none()),
            members,
            joins: OnceLock::new(),
        })
    }

    pub(super) fn see_joins(&self, joins: Weak<WorkerJoins>) {
        let _ = self.joins.set(joins);
    }

    pub(super) async fn follow(check: Weak<Self>) {
        loop {
            let Some(this) = check.upgrade() else {
                return;
            };
            this.dial_some().await;
            this.asked.store(true, Ordering::Relaxed);
            let [soon, later] = ROUNDS;
            let pause = match this.trust().is_cut_off() {
                true => soon,
                false => later,
            };
            drop(this);
            sleep(pause).await;
        }
    }

    async fn dial_some(&self) {
        // An open link proves more than a dial.
        if self.tls.has_connections() {
            return;
        }
        let Some(members) = &self.members else {
            return;
        };
        let mut others = others(members);
        others.shuffle(&mut rand::rng());
        let dials = others
            .iter()
            .take(AT_ONCE)
            .map(|node| look_for(members.me(), &node.id, &node.address, &self.links));
        join_all(dials).await;
    }

    fn trust(&self) -> PeerTrust {
        let mut peers: BTreeSet<String> = BTreeSet::new();
        if let Some(members) = &self.members {
            peers.extend(others(members).into_iter().map(|node| node.address));
        }
        if let Some(joins) = self.joins.get().and_then(Weak::upgrade) {
            let links = joins.status().into_iter().flatten();
            peers.extend(links.map(|link| link.address));
        }
        self.tls.trust_of(peers.iter().map(String::as_str))
    }

    pub(super) fn distrusted(&self) -> u64 {
        let count = self.trust().distrusted.len();
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// Once the process `has_served`, a single peer that has always distrusted the process does not count, because that
    /// peer may be wrong.
    pub(super) fn verdict(&self, has_served: bool) -> PeerVerdict {
        let trust = self.trust();
        let outvoted = trust.distrusted.len() > 1 || trust.distrusted.iter().any(|peer| peer.lost);
        if trust.is_cut_off() && (!has_served || outvoted) {
            let why = told(&trust.distrusted);
            return PeerVerdict::CutOff(format!(
                "TLS keeps this process from every other: {why}. Compare cluster.tls.certificate, authority and name here with \
                 theirs, and look for \"certificate\" in the log"
            ));
        }
        if !trust.distrusted.is_empty() {
            let why = told(&trust.distrusted);
            return PeerVerdict::Partly(format!("no TLS with other processes: {why}"));
        }
        match self.asked.load(Ordering::Relaxed) {
            true => PeerVerdict::Good,
            false => PeerVerdict::Unasked,
        }
    }
}

fn others(members: &Members) -> Vec<NodeInfo> {
    let view = members.view();
    let is_other = |info: &&NodeInfo| info.id != *members.me() && !info.address.is_empty();
    let present = view.nodes().filter(|node| node.is_present());
    present
        .map(|node| node.info())
        .filter(is_other)
        .cloned()
        .collect()
}

fn told(peers: &[Distrusted]) -> String {
    let named = peers.iter().take(NAMED);
    let mut told: Vec<String> = named
        .map(|peer| format!("{}: {}", peer.address, peer.why))
        .collect();
    if let Some(more @ 1..) = peers.len().checked_sub(NAMED) {
        told.push(format!("and {more} more"));
    }
    told.join("; ")
}
