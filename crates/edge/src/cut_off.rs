use std::sync::Arc;

use http::request::Parts;
use shoal_ports::{AuthError, Principal};

use crate::audit::{self, AuditContext};
use crate::measure;
use crate::state::EdgeState;

pub(crate) struct CutOff {
    edge: Arc<EdgeState>,
    principal: Principal,
    came: Option<Box<AuditContext>>,
}

impl CutOff {
    pub(crate) fn of(edge: &Arc<EdgeState>, principal: &Principal, head: &Parts) -> Self {
        Self {
            edge: Arc::clone(edge),
            principal: principal.clone(),
            came: audit::enabled().then(|| Box::new(AuditContext::of(edge, head))),
        }
    }

    pub(crate) fn tell(&self, why: &AuthError) {
        let refusal = measure::outcome(why).1;
        tracing::info!(refusal, principal = %self.principal, "ended a stream: {why}");
        if let Some(came) = &self.came {
            audit::cut_off(&self.edge, &self.principal, came, why);
        }
    }
}
