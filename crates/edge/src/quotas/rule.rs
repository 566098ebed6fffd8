//! One quota at work.

use std::sync::Arc;
use std::time::Duration;

use shoal_ports::{CellRate, QuotaConfig, QuotaKey, QuotaSubject, matches_pattern};
use shoal_protocol::{Body, Message, Method, Request};
use shoal_telemetry::metrics::{QuotaLeaseOutcome, QuotaOutcome, metrics};

use super::leases::Leases;
use super::places::{PlaceCounts, Places};
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

    /// How many requests of a body it counts.
    pub(super) fn count(&self, body: &Body) -> u32 {
        let counts = |message: &Message| match message {
            Message::Request(request) => u32::from(self.counts(request)),
            _ => 0,
        };
        match body {
            Body::Single(message) => counts(message),
            Body::Batch(messages) => messages.iter().flatten().map(counts).sum(),
        }
    }

    fn counts(&self, request: &Request) -> bool {
        if self.config.tools.is_empty() {
            return true;
        }
        if request.method != Method::ToolsCall {
            return false;
        }
        let name = request.params.as_ref().and_then(|it| it.member("name"));
        let Some(name) = name else {
            return false;
        };
        // As it is written, unless that is not how it is read.
        let written = name.as_str().trim_matches('"');
        let read = written.contains('\\').then(|| name.string()).flatten();
        let name = read.as_deref().unwrap_or(written);
        let tools = &self.config.tools;
        tools.iter().any(|pattern| matches_pattern(pattern, name))
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

    pub(super) fn refused(&self, subject: &QuotaSubject) {
        self.counted(QuotaOutcome::Refused);
        audit::over_quota(&self.name, subject);
    }

    pub(super) fn leased(&self, outcome: QuotaLeaseOutcome) {
        metrics().security.quota_lease(&self.name, outcome);
    }
}
