use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use shoal_ports::{ListOwner, ListScope, OwnLists, Principal, WorkerId};

use crate::asker::Asker;

#[derive(Default)]
pub(crate) struct OwnPools {
    /// Pools with lists per principal, and the headers that their calls need.
    pools: Vec<(Arc<str>, Vec<Arc<str>>)>,
    owners: HashMap<ListOwner, Vec<OwnPart>>,
}

#[derive(Clone, Debug)]
pub(crate) struct OwnPart {
    pub(super) pool: Arc<str>,
    /// Versions of the lists of tools, of resources with templates, and of prompts.
    pub(super) numbers: [u64; 3],
    /// The worker, if it alone serves the items.
    pub(super) worker: Option<WorkerId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Viewer {
    owner: Option<ListOwner>,
    pub(super) principal: Principal,
    /// The caller's headers, hashed because they may be credentials.
    brings: [u8; 32],
}

pub(crate) struct OwnSight {
    pub(super) viewer: Viewer,
    pub(super) parts: Vec<OwnPart>,
}

impl OwnPools {
    pub(crate) fn add_pool(&mut self, pool: &Arc<str>, headers: &[Arc<str>]) {
        match self.pools.iter_mut().find(|(own, _)| own == pool) {
            Some((_, known)) => {
                let more = headers.iter().filter(|name| !known.contains(name)).cloned();
                let more: Vec<_> = more.collect();
                known.extend(more);
            }
            None => self.pools.push((pool.clone(), headers.to_vec())),
        }
    }

    pub(crate) fn add_worker(&mut self, pool: &Arc<str>, worker: &WorkerId, own: &OwnLists) {
        for (owner, numbers) in own.iter() {
            let part = OwnPart {
                pool: pool.clone(),
                numbers: *numbers,
                worker: Some(worker.clone()),
            };
            self.owners.entry(owner.clone()).or_default().push(part);
        }
    }

    pub(crate) fn scope(&self, pool: &str) -> ListScope {
        match self.pools.iter().any(|(own, _)| **own == *pool) {
            true => ListScope::Principal,
            false => ListScope::Shared,
        }
    }

    pub(crate) fn owners_in(&self, pool: &str) -> usize {
        let has = |parts: &&Vec<OwnPart>| parts.iter().any(|part| *part.pool == *pool);
        self.owners.values().filter(has).count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pools.is_empty() && self.owners.is_empty()
    }

    pub(crate) fn numbers(&self) -> OwnLists {
        let sum = |parts: &[OwnPart]| {
            parts.iter().fold([0_u64; 3], |mut all, part| {
                for (all, own) in all.iter_mut().zip(part.numbers) {
                    *all = all.wrapping_add(own);
                }
                all
            })
        };
        let owners = self.owners.iter();
        let numbers: BTreeMap<_, _> = owners.map(|(it, parts)| (it.clone(), sum(parts))).collect();
        Arc::new(numbers)
    }

    pub(crate) fn concerns<'a>(&self, pool: &str, asker: impl Into<Asker<'a>>) -> bool {
        self.pools.iter().any(|(own, _)| **own == *pool) || self.part(pool, asker.into()).is_some()
    }

    pub(crate) fn worker(&self, pool: &str, asker: Asker<'_>) -> Option<&WorkerId> {
        self.part(pool, asker)?.worker.as_ref()
    }

    /// `None` if the caller sees the shared catalog.
    pub(crate) fn sight<'a>(&self, asker: impl Into<Asker<'a>>) -> Option<OwnSight> {
        let asker = asker.into();
        if self.is_empty() {
            return None;
        }
        let (mut parts, mut owner) = (Vec::<OwnPart>::new(), None);
        let has = |parts: &[OwnPart], pool: &str| parts.iter().any(|it| *it.pool == *pool);
        for of in owners(asker) {
            for part in self.owners.get(&of).into_iter().flatten() {
                if !has(&parts, &part.pool) {
                    parts.push(part.clone());
                    owner.get_or_insert_with(|| of.clone());
                }
            }
        }
        let mut brings = Sha256::new();
        for (pool, headers) in &self.pools {
            for (name, value) in asker.headers.only(headers).iter() {
                for part in [name.as_bytes(), value] {
                    brings.update(part.len().to_le_bytes());
                    brings.update(part);
                }
            }
            if !has(&parts, pool) {
                parts.push(OwnPart {
                    pool: pool.clone(),
                    numbers: [0; 3],
                    worker: None,
                });
            }
        }
        (!parts.is_empty()).then(|| OwnSight {
            viewer: Viewer {
                owner,
                principal: asker.principal.clone(),
                brings: brings.finalize().into(),
            },
            parts,
        })
    }

    fn part(&self, pool: &str, asker: Asker<'_>) -> Option<&OwnPart> {
        if self.owners.is_empty() {
            return None;
        }
        let mut parts = owners(asker)
            .into_iter()
            .filter_map(|owner| self.owners.get(&owner))
            .flatten();
        parts.find(|part| *part.pool == *pool)
    }
}

fn owners(asker: Asker<'_>) -> [ListOwner; 2] {
    ListOwner::of(asker.session, asker.principal)
}
