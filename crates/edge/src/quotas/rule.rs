//! One quota at work.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{CellRate, Principal, QuotaConfig, QuotaKey, QuotaSubject, matches_pattern};
use shoal_telemetry::metrics::{QuotaLeaseOutcome, QuotaOutcome, metrics};

use super::leases::Leases;
use super::places::{PlaceCounts, Places};
use super::requests::Requests;
use crate::audit;
use crate::refusal::Refusal;

pub(super) struct Rule {
    pub(super) config: QuotaConfig,
    name: Arc<str>,
    pub(super) rate: Option<CellRate>,
    pub(super) leases: Leases,
    places: Arc<PlaceCounts>,
}

impl Rule {
    pub(super) fn new(config: &QuotaConfig) -> Self {
        Self {
            name: config.name.as_str().into(),
            rate: config.cells(),
            config: config.clone(),
            leases: Leases::default(),
            places: Arc::default(),
        }
    }

    pub(super) fn key(&self, subject: QuotaSubject) -> QuotaKey {
        QuotaKey {
            quota: Arc::clone(&self.name),
            subject,
        }
    }

    /// How many of these requests it counts.
    pub(super) fn count(&self, requests: &Requests<'_>) -> u32 {
        requests
            .iter()
            .map(|tool| u32::from(self.counts(tool)))
            .sum()
    }

    fn counts(&self, tool: Option<&str>) -> bool {
        let tools = &self.config.tools;
        let is_named = |tool| tools.iter().any(|pattern| matches_pattern(pattern, tool));
        tools.is_empty() || tool.is_some_and(is_named)
    }

    /// Takes places for calls that are under way at once, if that is limited.
    pub(super) fn take_places(
        &self,
        subject: &QuotaSubject,
        count: u32,
        places: &mut Places,
    ) -> Result<(), Refusal> {
        let Some(limit) = self.config.concurrent else {
            return Ok(());
        };
        if count as usize > limit {
            return Err(self.never(count));
        }
        let place = PlaceCounts::take(&self.places, subject.clone(), count as usize, limit);
        let place = place.ok_or_else(|| Refusal::QuotaPlaces {
            quota: Arc::clone(&self.name),
            limit,
        })?;
        places.add(place);
        Ok(())
    }

    pub(super) fn used_up(&self, wait: Duration) -> Refusal {
        Refusal::QuotaUsedUp {
            quota: Arc::clone(&self.name),
            wait,
        }
    }

    pub(super) fn never(&self, count: u32) -> Refusal {
        Refusal::BatchOverQuota {
            quota: Arc::clone(&self.name),
            count,
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
