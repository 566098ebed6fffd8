//! Spells every key and channel.
//!
//! All keys of one session share its hash tag, and all of the nodes share another, so that a Redis Cluster
//! keeps together what one step touches.

use sha2::{Digest as _, Sha256};
use shoal_ports::{CallId, DeliveryId, NodeId, QuotaKey, QuotaSubject, SessionId, StoreError};

/// The keys of one deployment: those of its prefix.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    /// A prefix must be checked first ([`is_prefix`]).
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    /// The session's hash. The scripts derive the keys of its streams from it (`lua/common.lua`).
    ///
    /// # Errors
    /// `NotFound` for an id that would break out of the hash tag: no session is called so.
    pub(crate) fn session(&self, session: &SessionId) -> Result<String, StoreError> {
        let id = session.as_str();
        if id.is_empty() || id.contains(['{', '}']) {
            return Err(StoreError::NotFound);
        }
        Ok(format!("{}:{{{id}}}:s", self.prefix))
    }

    /// The lease of a node.
    pub(crate) fn lease(&self, node: &NodeId) -> String {
        format!("{}:{{nodes}}:lease:{node}", self.prefix)
    }

    /// The hash of nodes.
    pub(crate) fn nodes(&self) -> String {
        format!("{}:{{nodes}}:info", self.prefix)
    }

    /// The sessions that a node has listed, each with its principal.
    pub(crate) fn list(&self, node: &NodeId) -> String {
        format!("{}:{{nodes}}:tasks:{node}", self.prefix)
    }

    /// The nodes that have a list.
    pub(crate) fn lists(&self) -> String {
        format!("{}:{{nodes}}:tasks", self.prefix)
    }

    /// The pools that are remembered.
    pub(crate) fn pools(&self) -> String {
        format!("{}:{{nodes}}:pools", self.prefix)
    }

    /// The catalog of a pool that may scale to zero.
    pub(crate) fn catalog(&self, pool: &str) -> String {
        format!("{}:{{nodes}}:catalog:{pool}", self.prefix)
    }

    /// The names that several pools offer, each with the pool that keeps it.
    pub(crate) fn names(&self) -> String {
        format!("{}:{{nodes}}:names", self.prefix)
    }

    /// The bucket of a quota. A subject is hashed: it may hold anything, and Redis need not know who calls.
    pub(crate) fn quota(&self, key: &QuotaKey) -> String {
        let subject = match &key.subject {
            QuotaSubject::Everybody => "all".to_owned(),
            QuotaSubject::Address(address) => format!("a:{address}"),
            QuotaSubject::Principal(principal) => format!("p:{}", principal.as_str()),
        };
        let hash = Sha256::digest(subject.as_bytes());
        let hash = u128::from_be_bytes(std::array::from_fn(|at| hash[at]));
        format!("{}:{{q:{}:{hash:032x}}}", self.prefix, key.quota)
    }

    /// The channel of the cluster's bus.
    pub(crate) fn news(&self) -> String {
        format!("{}:{{nodes}}:news", self.prefix)
    }
}

/// Whether a text can stand before every key: a brace would move the hash tag.
pub(crate) fn is_prefix(prefix: &str) -> bool {
    !prefix.is_empty() && !prefix.contains(['{', '}'])
}

/// Fields of a session's hash; `lua/common.lua` lists them all.
pub(crate) mod field {
    use super::{CallId, DeliveryId};

    pub(crate) const EPOCH: &str = "e";
    pub(crate) const OWNER: &str = "o";
    pub(crate) const PRINCIPAL: &str = "p";
    pub(crate) const LOG: &str = "l";

    pub(crate) fn stream(stream: u32) -> String {
        format!("s{stream}")
    }

    pub(crate) fn nonces(stream: u32) -> String {
        format!("c{stream}")
    }

    pub(crate) fn delivery(delivery: DeliveryId) -> String {
        format!("d{delivery}")
    }

    pub(crate) fn entry(call: CallId) -> String {
        format!("j{call}")
    }
}

#[cfg(test)]
mod tests {
    use shoal_ports::{NodeId, SessionId, StoreError};

    use super::{Keys, is_prefix};

    #[test]
    fn a_session_cannot_leave_its_hash_tag() {
        let keys = Keys::new("shoal");
        assert_eq!(
            keys.session(&SessionId::new("abc")),
            Ok("shoal:{abc}:s".to_owned())
        );
        for id in ["", "}", "a{b", "nodes}:lease:n"] {
            let refused = keys.session(&SessionId::new(id));
            assert_eq!(refused, Err(StoreError::NotFound), "{id}");
        }
        assert_eq!(keys.lease(&NodeId::new("n")), "shoal:{nodes}:lease:n");
        assert!(is_prefix("shoal:test") && !is_prefix("") && !is_prefix("{x}"));
    }
}
