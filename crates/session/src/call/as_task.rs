use bytes::Bytes;
use shoal_ports::Caller;
use shoal_protocol::task::legacy;
use shoal_protocol::{Method, Request, RpcError, error_response, shown};

use super::{CallDriver, InFlight};

const LONGEST_NAME: usize = 128;

impl CallDriver {
    /// Whether the call runs as a task (2025-11-25).
    ///
    /// # Errors
    /// The call's task parameters are malformed, or they do not fit what the tool says about tasks.
    pub(crate) fn is_for_task(&self, in_flight: &InFlight) -> Result<bool, RpcError> {
        let call = &in_flight.plan.call;
        if call.method != Method::ToolsCall {
            return Ok(false);
        }
        let (caller, params) = (&call.caller, call.params.as_ref());
        let asked = legacy::asks_for_task(params)?;
        let refused = match asked {
            true if self.dispatcher.says_may_be_task(caller, params) => return Ok(true),
            true => {
                "does not say that its calls may be tasks (execution.taskSupport); call it without params.task"
            }
            false if !self.dispatcher.requires_task(caller, params) => return Ok(false),
            false => {
                "can be called as a task only (execution.taskSupport); call it with params.task"
            }
        };
        let mut error = RpcError::method_not_found(Method::ToolsCall.as_str());
        let name = params.and_then(|params| params.member("name")?.string());
        let name = shown(&name.unwrap_or_default(), LONGEST_NAME);
        error.message = format!("the tool {name} {refused}");
        Err(error)
    }
}

impl InFlight {
    pub(crate) fn to_request(&self) -> Request {
        Request {
            id: self.request().clone(),
            method: self.plan.call.method.clone(),
            params: self.plan.call.params.clone(),
        }
    }

    pub(crate) fn client(&self) -> &Caller {
        &self.plan.call.caller
    }

    pub(crate) fn refused(&self, error: &RpcError) -> Bytes {
        error_response(self.request(), error)
    }
}
