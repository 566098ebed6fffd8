//! What a POST has until it is answered.

use shoal_ports::{NodeLimits, Principal};

use crate::body_budget::BodyPermit;
use crate::load::{Load, RequestCount};
use crate::quotas::Places;
use crate::recorder::RequestRecord;
use crate::refusal::Refusal;

/// A POST that is under way until this is dropped.
pub(crate) struct RequestPermit {
    _count: RequestCount,
    /// What is recorded of it, if it asks for something.
    pub(crate) record: Option<RequestRecord>,
    /// What it holds of quotas: of where it comes from, and of what it asks for.
    pub(crate) places: [Places; 2],
    /// What its body holds, if that is large.
    pub(crate) room: Option<BodyPermit>,
}

impl RequestPermit {
    /// One more POST of a principal.
    ///
    /// # Errors
    /// When there are as many as the node, or the principal, may have.
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
