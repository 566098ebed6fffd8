//! Plans pools for all objects, within the limits. An error in one object does not affect the others.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use shoal_outbound::OutboundConfig;
use shoal_ports::kubernetes::KubernetesSettings;
use shoal_telemetry::metrics::DiscoveryRefusal as Reason;

use crate::object::{Object, What};
use crate::target::Reach;
use crate::translate::{NoPool, Pool, Refusal, SecretKey, pool};

#[derive(Debug, Default)]
pub(crate) struct Plan<'a> {
    /// The pools, from the oldest object to the youngest.
    pub(crate) pools: Vec<Planned<'a>>,
    pub(crate) refused: Vec<Refused<'a>>,
    /// Number of objects that have no URL in their status yet.
    pub(crate) waiting: usize,
}

#[derive(Debug)]
pub(crate) struct Planned<'a> {
    pub(crate) object: &'a Object,
    pub(crate) pool: Pool,
}

#[derive(Debug)]
pub(crate) struct Refused<'a> {
    pub(crate) object: &'a Object,
    pub(crate) refusal: Refusal,
}

/// Checks that a pool would be valid in the configuration.
pub(crate) type Accepts<'a> = &'a dyn Fn(&Pool) -> Result<(), String>;

impl<'a> Plan<'a> {
    /// Plans the pools of the objects. `taken` has the names of the pools in Shoal's configuration, which keep these
    /// names.
    pub(crate) fn of(
        objects: &'a [impl Borrow<Object>],
        config: &KubernetesSettings,
        outbound: &OutboundConfig,
        taken: &BTreeSet<String>,
        accepts: Accepts<'_>,
    ) -> Self {
        let mut senior: Vec<&Object> = objects.iter().map(Borrow::borrow).collect();
        let services = senior.iter().filter_map(|object| match &object.what {
            What::Service(service) => Some(((&*object.namespace, &*object.name), service)),
            What::Published(_) => None,
        });
        let services: BTreeMap<_, _> = services.collect();
        let reach = Reach {
            services: &services,
            outbound,
            cluster_domain: &config.cluster_domain,
        };
        senior.sort_by_key(|object| object.seniority());
        let mut plan = Self::default();
        let mut names: BTreeMap<String, &Object> = BTreeMap::new();
        let mut per_namespace: BTreeMap<&str, usize> = BTreeMap::new();
        // The objects contain the Services even if the kinds do not, because URLs of other kinds lead to Services.
        let is_server = |object: &&Object| config.kinds.contains(&object.kind);
        for object in senior.into_iter().filter(is_server) {
            let made = pool(object, &reach).and_then(|pool| {
                let refusal = if taken.contains(&pool.name) {
                    let message = format!("the configuration has a pool {} of its own, which counts", pool.name);
                    Some((Reason::NameTaken, message))
                } else if let Some(holder) = names.get(&pool.name) {
                    let message = format!("{} is older and has the pool {}", holder.path(), pool.name);
                    Some((Reason::NameTaken, message))
                } else if pool.token.is_some() && !config.tokens {
                    let message = "shoal.dev/token-secret: this controller reads no Secrets (discovery.kubernetes.tokens)";
                    Some((Reason::TokenUnavailable, message.to_owned()))
                } else if per_namespace.get(&*object.namespace) >= Some(&config.pools_per_namespace) {
                    let message = format!(
                        "the namespace {} has {} pools of older objects, as many as it may have (discovery.kubernetes.pools_per_namespace)",
                        object.namespace, config.pools_per_namespace
                    );
                    Some((Reason::LimitReached, message))
                } else if names.len() >= config.pools {
                    let message = format!(
                        "there are {} pools of older objects, as many as there may be (discovery.kubernetes.pools)",
                        config.pools
                    );
                    Some((Reason::LimitReached, message))
                } else {
                    accepts(&pool).err().map(|wrong| (Reason::PoolInvalid, wrong))
                };
                match refusal {
                    Some((reason, message)) => Err(Refusal::of(reason, message).into()),
                    None => Ok(pool),
                }
            });
            match made {
                Ok(pool) => {
                    *per_namespace.entry(&object.namespace).or_default() += 1;
                    names.insert(pool.name.clone(), object);
                    plan.pools.push(Planned { object, pool });
                }
                Err(NoPool::NoServer) => {}
                Err(NoPool::Waiting) => plan.waiting += 1,
                Err(NoPool::Refused(refusal)) => plan.refused.push(Refused { object, refusal }),
            }
        }
        plan
    }

    pub(crate) fn tokens(&self) -> BTreeSet<SecretKey> {
        let keys = self.pools.iter().filter_map(|it| it.pool.token.clone());
        keys.collect()
    }

    /// Refuses the pools whose token is among `missing`.
    pub(crate) fn without(&mut self, missing: &BTreeMap<SecretKey, String>) {
        let lacks = |it: &Planned<'_>| {
            let key = it.pool.token.as_ref()?;
            missing.get(key).cloned()
        };
        for it in std::mem::take(&mut self.pools) {
            match lacks(&it) {
                Some(why) => self.refused.push(Refused {
                    object: it.object,
                    refusal: Refusal::of(Reason::TokenUnavailable, why),
                }),
                None => self.pools.push(it),
            }
        }
    }
}

#[cfg(test)]
mod tests;
