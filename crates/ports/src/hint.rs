//! The hint in a session id: a short name of the node that opened the session.
//!
//! A hint may be forged or outdated, so it only chooses the node to ask first. That node answers
//! only for its own sessions ([`SessionRef::hinted`](crate::SessionRef::hinted)); otherwise the
//! store decides.

use uuid::Uuid;

use crate::{NodeId, SessionId};

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

const TAG_DIGITS: usize = 8;
const TASK: &str = "-task";
const RANDOM_DIGITS: usize = 32;

/// A node's short name in session ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeTag(u32);

impl std::fmt::Display for NodeTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:0TAG_DIGITS$x}", self.0)
    }
}

impl NodeId {
    /// Returns the node's tag, equal in all releases.
    pub fn tag(&self) -> NodeTag {
        let hash = stable_hash(self.as_str().bytes());
        NodeTag(u32::try_from(hash >> 32).expect("half of it fits"))
    }
}

impl SessionId {
    /// Draws a session id with 122 cryptographically random bits and the tag of `node`.
    pub fn opened_by(node: &NodeId) -> Self {
        Self::new(format!("{}-{}", Uuid::new_v4().simple(), node.tag()))
    }

    /// Draws a task's id with the tag of `node`.
    pub fn of_task_opened_by(node: &NodeId) -> Self {
        Self::new(format!("{}{TASK}", Self::opened_by(node)))
    }

    /// Whether the session is a task.
    pub fn is_task(&self) -> bool {
        self.as_str().ends_with(TASK)
    }

    /// Returns the tag of the node that opened the session, if any.
    pub fn hint(&self) -> Option<NodeTag> {
        let id = self.as_str().strip_suffix(TASK).unwrap_or(self.as_str());
        let (random, tag) = id.split_once('-')?;
        let is_hex = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let fits = random.len() == RANDOM_DIGITS && tag.len() == TAG_DIGITS;
        let tag = Some(tag).filter(|tag| fits && is_hex(random) && is_hex(tag))?;
        u32::from_str_radix(tag, 16).ok().map(NodeTag)
    }
}

/// Hashes equally in all releases: FNV-1a, finished like splitmix64, because FNV's high bits barely
/// depend on the last bytes.
pub fn stable_hash(bytes: impl Iterator<Item = u8>) -> u64 {
    let mut hash = bytes.fold(OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    });
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::{NodeId, SessionId};

    #[test]
    fn an_id_names_the_node_that_opened_it() {
        let node = NodeId::new("shoal-session-7f-a1b2c3");
        let (one, other) = (SessionId::opened_by(&node), SessionId::opened_by(&node));
        assert_ne!(one, other);
        assert_eq!(one.hint(), Some(node.tag()));
        assert_eq!(other.hint(), Some(node.tag()));
        assert!(!one.as_str().contains(node.as_str()));
        assert!(one.as_str().len() < 128 && one.as_str().bytes().all(|b| b.is_ascii_graphic()));
        let random = &one.as_str()[..32];
        assert_eq!(uuid::Uuid::parse_str(random).unwrap().get_version_num(), 4);
    }

    #[test]
    fn a_task_is_told_from_a_session_by_its_id() {
        let node = NodeId::new("n");
        let (task, session) = (
            SessionId::of_task_opened_by(&node),
            SessionId::opened_by(&node),
        );
        assert!(task.is_task() && !session.is_task());
        assert_eq!(task.hint(), Some(node.tag()));
    }

    #[test]
    fn the_tag_is_fixed_for_all_releases() {
        assert_eq!(NodeId::new("n").tag().to_string(), "0a86dec9");
    }

    #[test]
    fn nodes_have_tags_of_their_own() {
        let tags: HashSet<_> = (0..1000)
            .map(|n| NodeId::new(format!("shoal-edge-{n}")).tag())
            .collect();
        assert_eq!(tags.len(), 1000);
    }

    #[test]
    fn ids_of_any_other_form_have_no_hint() {
        let plain = SessionId::random();
        assert_eq!(plain.hint(), None, "of an earlier release");
        for id in [
            String::new(),
            "-".to_owned(),
            format!("{plain}-"),
            format!("{plain}-0123456"),
            format!("{plain}-012345678"),
            format!("{plain}-+1234567"),
            format!("{plain}-0123456G"),
            format!("{plain}-0123ABCD"),
            format!("{plain}-01234567-"),
            format!("x{plain}-01234567"),
            format!("{}é-01234567", "0".repeat(30)),
        ] {
            assert_eq!(SessionId::new(id.as_str()).hint(), None, "{id}");
        }
    }
}
