use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Principal, SessionId};

/// Whether the callers of a pool share its lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ListScope {
    /// All callers. Shoal reads with its own credentials.
    #[default]
    Shared,
    /// None. Shoal reads with each caller's forwarded headers or exchanged token.
    Principal,
}

/// Callers that share one set of lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListOwner {
    /// A legacy session.
    Session(SessionId),
    /// A principal's calls, except in sessions with own lists.
    Principal(Principal),
    /// A principal's calls without a session.
    Sessionless(Principal),
}

impl ListOwner {
    /// Returns the possible owners, the most specific first.
    pub fn of(session: Option<&SessionId>, principal: &Principal) -> [Self; 2] {
        [
            match session {
                Some(session) => Self::Session(session.clone()),
                None => Self::Sessionless(principal.clone()),
            },
            Self::Principal(principal.clone()),
        ]
    }
}

/// Owners' versions of their lists of tools, resources (with templates) and prompts. Version 0
/// stands for the shared list.
pub type OwnLists = Arc<BTreeMap<ListOwner, [u64; 3]>>;

/// Returns owners whose versions changed, and which lists did.
pub fn changed_owners<'a>(
    before: &'a OwnLists,
    now: &'a OwnLists,
) -> impl Iterator<Item = (&'a ListOwner, [bool; 3])> {
    const NONE: [u64; 3] = [0; 3];
    let gone = before.keys().filter(|owner| !now.contains_key(*owner));
    now.keys().chain(gone).filter_map(move |owner| {
        let [before, now] = [before, now].map(|lists| lists.get(owner).unwrap_or(&NONE));
        let changed = std::array::from_fn(|list| before[list] != now[list]);
        (before != now).then_some((owner, changed))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::{ListOwner, changed_owners};
    use crate::SessionId;

    #[test]
    fn owners_that_come_change_and_go_are_told() {
        let owner = |name: &str| ListOwner::Session(SessionId::new(name));
        let lists = |all: &[(&str, [u64; 3])]| {
            let all = all.iter().map(|(name, numbers)| (owner(name), *numbers));
            Arc::new(all.collect::<BTreeMap<_, _>>())
        };
        let before = lists(&[
            ("gone", [1, 0, 2]),
            ("same", [3, 3, 3]),
            ("other", [4, 4, 4]),
        ]);
        let now = lists(&[
            ("new", [0, 9, 0]),
            ("same", [3, 3, 3]),
            ("other", [4, 5, 4]),
        ]);
        let changed: BTreeMap<_, _> = changed_owners(&before, &now).collect();
        let [gone, new, other] = ["gone", "new", "other"].map(owner);
        let expected = BTreeMap::from([
            (&gone, [true, false, true]),
            (&new, [false, true, false]),
            (&other, [false, true, false]),
        ]);
        assert_eq!(changed, expected);
    }
}
