//! The part of a caller that decides which lists it sees and which workers it may get.

use std::sync::Arc;

use shoal_ports::{Caller, FailureKey, ForwardedHeaders, Principal, SessionId, SessionRef};
use shoal_protocol::Method;

#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) principal: &'a Principal,
    pub(crate) session: Option<&'a SessionId>,
    pub(crate) headers: &'a ForwardedHeaders,
}

impl Asker<'_> {
    pub(crate) fn failure_key(&self, method: &Method, tool: Option<&str>) -> FailureKey {
        FailureKey::of_principal(self.principal, self.session, method, tool)
    }
}

impl<'a> From<&'a Caller> for Asker<'a> {
    fn from(caller: &'a Caller) -> Self {
        Self {
            principal: &caller.principal,
            session: caller.session.as_ref(),
            headers: &caller.headers,
        }
    }
}

impl<'a> From<&'a Arc<Caller>> for Asker<'a> {
    fn from(caller: &'a Arc<Caller>) -> Self {
        Self::from(&**caller)
    }
}

impl<'a> From<&'a SessionRef> for Asker<'a> {
    fn from(to: &'a SessionRef) -> Self {
        Self {
            principal: &to.principal,
            session: Some(&to.session),
            headers: &to.headers,
        }
    }
}
