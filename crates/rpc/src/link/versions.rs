use shoal_ports::NEWEST_PROTOCOL;

use crate::LinkConfig;
use crate::proto::types::v1::{Limits, Versions};

pub(crate) const LOWEST: u32 = 1;
/// Adds batches.
pub(crate) const BATCHES: u32 = 2;
/// Adds calls' requests for session state.
pub(crate) const STATE: u32 = 3;
/// Added plans of edges in deliveries, until version 5.
const PLANS: u32 = 4;
/// Adds reports that the tool of a cancelled or timed-out call has stopped.
pub(crate) const STOPS: u32 = 5;
/// Adds bindings: edges bind calls to workers, and the session's owner plans them.
pub(crate) const BINDINGS: u32 = 6;
/// Adds typed requests about tasks, and about the end of calls.
pub(crate) const TASKS: u32 = 6;

pub(crate) fn own(config: &LinkConfig) -> Versions {
    Versions {
        lowest: LOWEST,
        highest: config.cluster.protocol.clamp(LOWEST, NEWEST_PROTOCOL),
    }
}

/// Edges of versions 4 and 5 send a plan in place of the caller's grant, but this release plans itself.
pub(crate) fn without_plans(theirs: Versions) -> Versions {
    let plans = (PLANS..BINDINGS).contains(&theirs.highest);
    Versions {
        highest: if plans { PLANS - 1 } else { theirs.highest },
        ..theirs
    }
}

/// The error is meant for the peer.
pub(crate) fn negotiate(config: &LinkConfig, theirs: Option<Versions>) -> Result<u32, String> {
    let ours = own(config);
    let theirs = theirs.unwrap_or_default();
    let highest = ours.highest.min(theirs.highest);
    if theirs.lowest == 0 || highest < ours.lowest.max(theirs.lowest) {
        return Err(format!(
            "no common protocol version: the caller speaks {} to {}, this node {} to {}",
            theirs.lowest, theirs.highest, ours.lowest, ours.highest
        ));
    }
    Ok(highest)
}

pub(crate) fn is_offered(config: &LinkConfig, version: u32) -> bool {
    let ours = own(config);
    (ours.lowest..=ours.highest).contains(&version)
}

pub(crate) fn limits(config: &LinkConfig) -> Limits {
    Limits {
        frame_bytes: config.max_frame as u64,
        credit_bytes: config.credit,
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerHello {
    pub(crate) version: u32,
    pub(crate) max_frame: usize,
    pub(crate) credit: i64,
}

impl PeerHello {
    pub(crate) fn new(version: u32, limits: Option<Limits>) -> Self {
        let limits = limits.unwrap_or_default();
        let or = |said: u64, default: u64| if said == 0 { default } else { said };
        let max_frame = or(limits.frame_bytes, 16 * 1024 * 1024);
        let credit = or(limits.credit_bytes, 256 * 1024);
        Self {
            version,
            max_frame: usize::try_from(max_frame).unwrap_or(usize::MAX),
            credit: i64::try_from(credit).unwrap_or(i64::MAX / 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PeerHello, Versions, negotiate, without_plans};
    use crate::LinkConfig;

    fn versions(lowest: u32, highest: u32) -> Option<Versions> {
        Some(Versions { lowest, highest })
    }

    #[test]
    fn the_highest_common_version_is_spoken() {
        let newest = LinkConfig::default();
        let mut pinned = LinkConfig::default();
        pinned.cluster.protocol = 1;
        assert_eq!(negotiate(&newest, versions(1, 2)), Ok(2));
        assert_eq!(negotiate(&newest, versions(2, 9)), Ok(6));
        assert_eq!(negotiate(&pinned, versions(1, 2)), Ok(1));
        assert_eq!(negotiate(&newest, versions(1, 1)), Ok(1));
    }

    #[test]
    fn an_edge_that_would_send_plans_speaks_an_older_version() {
        for (offered, spoken) in [(3, 3), (4, 3), (5, 3), (6, 6), (7, 6)] {
            let theirs = versions(1, offered).map(without_plans);
            assert_eq!(negotiate(&LinkConfig::default(), theirs), Ok(spoken));
        }
    }

    #[test]
    fn without_a_common_version_both_ranges_are_named() {
        let refusal = negotiate(&LinkConfig::default(), versions(7, 9)).unwrap_err();
        assert!(
            refusal.contains("7 to 9") && refusal.contains("1 to 6"),
            "{refusal}"
        );
        for nonsense in [None, versions(0, 0), versions(2, 1)] {
            assert!(negotiate(&LinkConfig::default(), nonsense).is_err());
        }
    }

    #[test]
    fn limits_that_are_not_stated_take_their_defaults() {
        let peer = PeerHello::new(1, None);
        assert_eq!((peer.max_frame, peer.credit), (16 << 20, 256 << 10));
    }
}
