use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{CellRate, Principal, QuotaConfig, QuotaKey, QuotaSubject, matches_pattern};
use shoal_telemetry::metrics::{QuotaLeaseOutcome, QuotaOutcome, metrics};
use tokio::time::Instant;

use super::leases::{LeaseStep, Leases};
use super::requests::CountedRequests;
use crate::audit;
use crate::places::QuotaPlaces;
use crate::refusal::Refusal;

pub(super) struct QuotaRule {
    pub(super) config: QuotaConfig,
    name: Arc<str>,
    pub(super) rate: Option<CellRate>,
    /// The most requests in one message that the quota can ever admit.
    most: u32,
    pub(super) leases: Leases,
}

impl QuotaRule {
    pub(super) fn new(config: &QuotaConfig) -> Self {
        let rate = config.cells();
        let places = config.concurrent.map_or(Ok(u32::MAX), u32::try_from);
        let burst = rate.map_or(u32::MAX, CellRate::burst);
        Self {
            name: config.name.as_str().into(),
            rate,
            most: places.unwrap_or(u32::MAX).min(burst),
            config: config.clone(),
            leases: Leases::default(),
        }
    }

    pub(super) fn key(&self, subject: QuotaSubject) -> QuotaKey {
        QuotaKey {
            quota: Arc::clone(&self.name),
            subject,
        }
    }

    pub(super) fn count(&self, requests: &CountedRequests<'_>) -> u32 {
        let tools = &self.config.tools;
        let is_named = |tool: &&str| tools.iter().any(|pattern| matches_pattern(pattern, tool));
        let count = match tools.is_empty() {
            true => requests.len(),
            false => requests.tools().filter(is_named).count(),
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Takes places up to `limit`, then cells, for which the caller may have to wait.
    pub(super) fn take(
        &self,
        subject: &QuotaSubject,
        count: u32,
        limit: Option<usize>,
        now: Instant,
        places: &mut QuotaPlaces,
    ) -> Result<LeaseStep, Refusal> {
        if count > self.most {
            return Err(Refusal::BatchOverQuota {
                quota: Arc::clone(&self.name),
                count,
            });
        }
        self.leases.with(subject, now, |lease| {
            if let Some(limit) = limit {
                let place = lease.places.take(count as usize, limit);
                places.add(place.ok_or_else(|| Refusal::QuotaPlaces {
                    quota: Arc::clone(&self.name),
                    limit,
                })?);
            }
            let spend = |rate| lease.spend(count, rate, now);
            Ok(self.rate.map_or(LeaseStep::Spent, spend))
        })
    }

    pub(super) fn used_up(&self, wait: Duration) -> Refusal {
        Refusal::QuotaUsedUp {
            quota: Arc::clone(&self.name),
            wait,
        }
    }

    pub(super) fn counted(&self, outcome: QuotaOutcome) {
        metrics().security.quota(&self.name, outcome);
    }

    pub(super) fn refused(&self, subject: &QuotaSubject, principal: Option<&Principal>) {
        self.counted(QuotaOutcome::Refused);
        audit::over_quota(&self.name, subject, principal);
    }

    pub(super) fn leased(&self, outcome: QuotaLeaseOutcome) {
        metrics().security.quota_lease(&self.name, outcome);
    }
}
