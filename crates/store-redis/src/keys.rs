//! For Redis Cluster, the keys of a session share a hash tag, as do the keys of the nodes.

use sha2::{Digest as _, Sha256};
use shoal_ports::{CallId, DeliveryId, NodeId, QuotaKey, QuotaSubject, SessionId, StoreError};

#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    /// The prefix must have passed [`is_prefix`].
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    /// Scripts derive the keys of the session's streams from this key (`lua/common.lua`). Fails with `NotFound` if the
    /// id would break the hash tag.
    pub(crate) fn session(&self, session: &SessionId) -> Result<String, StoreError> {
        let id = session.as_str();
        if id.is_empty() || id.contains(['{', '}']) {
            return Err(StoreError::NotFound);
        }
        Ok(format!("{}:{{{id}}}:s", self.prefix))
    }

    pub(crate) fn lease(&self, node: &NodeId) -> String {
        format!("{}:{{nodes}}:lease:{node}", self.prefix)
    }

    pub(crate) fn nodes(&self) -> String {
        format!("{}:{{nodes}}:info", self.prefix)
    }

    pub(crate) fn list(&self, node: &NodeId) -> String {
        format!("{}:{{nodes}}:tasks:{node}", self.prefix)
    }

    pub(crate) fn lists(&self) -> String {
        format!("{}:{{nodes}}:tasks", self.prefix)
    }

    pub(crate) fn pools(&self) -> String {
        format!("{}:{{nodes}}:pools", self.prefix)
    }

    pub(crate) fn catalog(&self, pool: &str) -> String {
        format!("{}:{{nodes}}:catalog:{pool}", self.prefix)
    }

    pub(crate) fn names(&self) -> String {
        format!("{}:{{nodes}}:names", self.prefix)
    }

    /// Hashes the quota's subject, because it is private and may be any text.
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

    pub(crate) fn news(&self) -> String {
        format!("{}:{{nodes}}:news", self.prefix)
    }
}

/// A brace in the prefix would move the hash tag.
pub(crate) fn is_prefix(prefix: &str) -> bool {
    !prefix.is_empty() && !prefix.contains(['{', '}'])
}

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
