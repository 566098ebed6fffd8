//! Elects the one controller that writes, with a Kubernetes Lease. A leader stops writing when its Lease ends, so it
//! cannot overwrite the plan of its successor.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client, Resource as _};
use shoal_ports::kubernetes::KubernetesSettings;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Whether, and until when, this controller may write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Leadership {
    /// How often this controller became the leader.
    pub(crate) term: u64,
    until: Option<Instant>,
}

impl Leadership {
    pub(crate) fn leads(self) -> bool {
        self.until.is_some_and(|until| until > Instant::now())
    }

    /// Waits until this controller no longer holds the Lease, or the Lease expires.
    pub(crate) async fn lost(mut leadership: watch::Receiver<Self>) {
        loop {
            let Some(until) = leadership.borrow_and_update().until else {
                return;
            };
            tokio::select! {
                biased;
                Ok(()) = leadership.changed() => {}
                () = sleep_until(until) => return,
            }
        }
    }
}

pub(crate) struct Election {
    leases: Api<Lease>,
    config_maps: Api<ConfigMap>,
    name: String,
    /// The ConfigMap that owns the Lease: if the ConfigMap is deleted, Kubernetes deletes the Lease too.
    owner: String,
    me: String,
    duration: Duration,
    /// The last seen holder, the renewal time by the holder's clock, and when this controller first saw both.
    seen: Option<(String, Option<MicroTime>, Instant)>,
    renewed: Option<Instant>,
    term: u64,
}

impl Election {
    pub(crate) fn new(client: Client, config: &KubernetesSettings, me: &str) -> Self {
        Self {
            leases: Api::default_namespaced(client.clone()),
            config_maps: Api::default_namespaced(client),
            name: config.lease.clone(),
            owner: config.config_map.clone(),
            me: me.to_owned(),
            duration: config.lease_duration.get(),
            seen: None,
            renewed: None,
            term: 0,
        }
    }

    /// Returns the interval between attempts to take or renew the Lease.
    pub(crate) fn every(&self) -> Duration {
        self.duration / 3
    }

    /// Returns whether and until when this controller may write. The time counts from before the renewing request, so
    /// it ends before others can take over.
    pub(crate) fn leadership(&self) -> Leadership {
        let renewed = self.renewed;
        Leadership {
            term: self.term,
            until: renewed.and_then(|renewed| renewed.checked_add(self.duration)),
        }
    }

    pub(crate) fn holder(&self) -> Option<&str> {
        let seen = self.seen.as_ref().map(|(holder, ..)| holder.as_str());
        seen.filter(|holder| !holder.is_empty())
    }

    /// Takes or renews the Lease if possible. Creates the Lease if it is missing.
    ///
    /// # Errors
    ///
    /// Fails if the API server refuses the request or does not answer.
    pub(crate) async fn take_part(&mut self) -> Result<(), kube::Error> {
        let began = Instant::now();
        let led = self.leadership().leads();
        let found = self.leases.get_opt(&self.name).await?;
        let is_there = found.is_some();
        let mut lease = match found {
            Some(lease) => lease,
            None => self.unheld().await?,
        };
        let spec = lease.spec.take().unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        if !holder.is_empty() && holder != self.me && !self.has_died(&holder, &spec) {
            self.renewed = None;
            return Ok(());
        }
        let now = Some(MicroTime(Timestamp::now()));
        let is_new = holder != self.me;
        // Round up, so that other controllers do not take over the Lease while this one still leads.
        let seconds = self.duration.as_millis().div_ceil(1000);
        let seconds = i32::try_from(seconds).unwrap_or(i32::MAX);
        lease.spec = Some(LeaseSpec {
            acquire_time: if is_new {
                now.clone()
            } else {
                spec.acquire_time
            },
            holder_identity: Some(self.me.clone()),
            lease_duration_seconds: Some(seconds),
            lease_transitions: Some(spec.lease_transitions.unwrap_or(0) + i32::from(is_new)),
            renew_time: now.clone(),
            ..spec
        });
        let params = PostParams::default();
        let written = match is_there {
            true => self.leases.replace(&self.name, &params, &lease).await,
            false => self.leases.create(&params, &lease).await,
        };
        match written {
            Ok(_) => {
                self.seen = Some((self.me.clone(), now, began));
                self.renewed = Some(began);
                self.term += u64::from(!led);
                Ok(())
            }
            // Another controller changed the Lease first.
            Err(kube::Error::Api(status)) if status.code == 409 => {
                self.renewed = None;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn unheld(&self) -> Result<Lease, kube::Error> {
        let owner = self.config_maps.get(&self.owner).await?;
        let mut lease = Lease::default();
        lease.metadata.name = Some(self.name.clone());
        lease.metadata.owner_references = owner.owner_ref(&()).map(|owner| vec![owner]);
        Ok(lease)
    }

    /// Whether the holder has not renewed the Lease for the Lease's duration. Measures the time by this controller's
    /// clock.
    fn has_died(&mut self, holder: &str, spec: &LeaseSpec) -> bool {
        let lasts = spec
            .lease_duration_seconds
            .and_then(|s| u64::try_from(s).ok());
        let lasts = lasts.map_or(self.duration, Duration::from_secs);
        match &self.seen {
            Some((known, renewed, at)) if known == holder && *renewed == spec.renew_time => {
                at.elapsed() > lasts
            }
            _ => {
                self.seen = Some((holder.to_owned(), spec.renew_time.clone(), Instant::now()));
                false
            }
        }
    }

    /// Releases the Lease, so that the next controller can take it at once.
    ///
    /// # Errors
    ///
    /// Fails if the API server refuses the request. The Lease then lasts until it expires.
    pub(crate) async fn resign(&mut self) -> Result<(), kube::Error> {
        if self.renewed.take().is_none() {
            return Ok(());
        }
        let Some(mut lease) = self.leases.get_opt(&self.name).await? else {
            return Ok(());
        };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.me) {
            return Ok(());
        }
        spec.holder_identity = None;
        let params = PostParams::default();
        self.leases.replace(&self.name, &params, &lease).await?;
        Ok(())
    }
}
