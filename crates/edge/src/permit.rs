use shoal_ports::{NodeLimits, Principal};

use crate::body_budget::BodyPermit;
use crate::load::{Load, RequestCount};
use crate::quotas::QuotaPlaces;
use crate::recorder::RequestRecord;
use crate::refusal::Refusal;

pub(crate) struct RequestPermit {
    _count: RequestCount,
    pub(crate) record: Option<RequestRecord>,
    /// The quota places that are counted by address, and those that are counted by caller.
    pub(crate) places: [QuotaPlaces; 2],
    pub(crate) room: Option<BodyPermit>,
}

impl RequestPermit {
    /// Counts a principal's POST until it is answered. Fails at the node's or the principal's
    /// limit.
    pub(crate) fn admit(
        load: &Load,
        principal: &Principal,
        limits: &NodeLimits,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            _count: load.admit_request(principal, limits)?,
            record: None,
            places: Default::default(),
            room: None,
        })
    }
}
