use std::sync::Arc;

use shoal_ports::{CallId, LogFilter, ServerFacts, shown};
use shoal_protocol::{
    LONGEST_REASON, LogLevel, Method, Notification, RawJson, RawObject, Request, RequestId,
    RpcError, error_response, response,
};

use super::updates::list_of;
use super::{AdmittedCall, CallSlot, Came, Effect, SessionMachine};

const MOST_UNMATCHED: usize = 16;

impl SessionMachine {
    pub(super) fn request(
        &mut self,
        request: Request,
        came: Came,
        repeated: bool,
        facts: &ServerFacts,
    ) -> Effect {
        if !self.answers_each_post() && self.admitted.get(&request.id).is_some() {
            return in_use(&request.id);
        }
        if request.method == Method::Initialize {
            return self.initialize(&request, facts);
        }
        let Some(revision) = self.revision() else {
            return match request.method {
                Method::Ping => Effect::Respond(empty_result(&request.id)),
                _ => refuse(
                    &request.id,
                    RpcError::invalid_request("send initialize first"),
                ),
            };
        };
        if !request.method.is_request_of(revision) {
            return refuse(
                &request.id,
                RpcError::method_not_found(request.method.as_str()),
            );
        }
        let needed = capability_of(&request.method);
        if needed.is_some_and(|capability| !has_capability(facts, capability)) {
            let unknown = RpcError::method_not_found(request.method.as_str());
            return refuse(&request.id, unknown);
        }
        match request.method {
            Method::Ping => Effect::Respond(empty_result(&request.id)),
            Method::SetLevel => self.set_level(&request),
            Method::ResourcesSubscribe => self.subscribe(request),
            Method::ResourcesUnsubscribe => self.unsubscribe(request),
            _ => self.admit(request, came, repeated, facts),
        }
    }

    /// A repeated request with a call id is not limited, because the limits applied to its first delivery.
    fn admit(
        &mut self,
        request: Request,
        came: Came,
        repeated: bool,
        facts: &ServerFacts,
    ) -> Effect {
        let Came { delivery, call } = came;
        // The repeated delivery may have come before this first one.
        if self.admitted.has(&request.id, came) {
            return in_use(&request.id);
        }
        let is_new = !repeated || call.is_none();
        if is_new && self.admitted.count() >= self.limits.calls {
            return Effect::Overloaded {
                retry_after: self.limits.retry_after,
            };
        }
        if let Some(list) = list_of(&request) {
            self.asked_for_list(list, facts);
        }
        let slot = Arc::new(CallSlot::new(call.unwrap_or_else(CallId::generate)));
        let admission = self
            .admitted
            .enter(request.id, slot.clone(), Some(delivery));
        Effect::Run(Box::new(AdmittedCall {
            admission,
            slot,
            method: request.method,
            params: request.params,
            caller: self.caller.clone(),
            log: LogFilter::AtLeast(self.record.log_level),
        }))
    }

    pub(super) fn cancel_at_once(&mut self, request: &RequestId, slot: &CallSlot) {
        let at = self
            .unmatched
            .iter()
            .position(|(known, _)| known == request);
        if let Some((_, reason)) = at.and_then(|at| self.unmatched.remove(at)) {
            slot.cancel(&reason);
        }
    }

    pub(crate) fn logs(&self, level: LogLevel, facts: &ServerFacts) -> bool {
        has_capability(facts, "logging") && level >= self.record.log_level
    }

    fn set_level(&mut self, request: &Request) -> Effect {
        let level = string_param(request, "level")
            .and_then(|level| level.parse::<LogLevel>().map_err(RpcError::invalid_params));
        match level {
            Ok(level) => {
                self.record.log_level = level;
                Effect::RespondAndSave(empty_result(&request.id))
            }
            Err(error) => refuse(&request.id, error),
        }
    }

    fn subscribe(&mut self, request: Request) -> Effect {
        let uri = match string_param(&request, "uri") {
            Ok(uri) => uri,
            Err(error) => return refuse(&request.id, error),
        };
        if self.record.subscriptions.contains(&uri) {
            return Effect::Respond(empty_result(&request.id));
        }
        if self.record.subscriptions.len() >= self.limits.subscriptions {
            return refuse(
                &request.id,
                RpcError::invalid_request(format!(
                    "the session is subscribed to {} resources, which is the limit; unsubscribe some",
                    self.limits.subscriptions
                )),
            );
        }
        let subscribed: usize = self.record.subscriptions.iter().map(String::len).sum();
        if subscribed + uri.len() > self.limits.subscription_bytes {
            return refuse(
                &request.id,
                RpcError::invalid_request(format!(
                    "the URIs that the session is subscribed to would have more than {} bytes, which is \
                     the limit; unsubscribe some",
                    self.limits.subscription_bytes
                )),
            );
        }
        self.record.subscriptions.insert(uri.clone());
        Effect::Subscribe {
            request: request.id,
            uri,
        }
    }

    fn unsubscribe(&mut self, request: Request) -> Effect {
        let uri = match string_param(&request, "uri") {
            Ok(uri) => uri,
            Err(error) => return refuse(&request.id, error),
        };
        self.record.updated.remove(&uri);
        if self.record.subscriptions.remove(&uri) {
            Effect::Unsubscribe {
                request: request.id,
                uri,
            }
        } else {
            Effect::Respond(empty_result(&request.id))
        }
    }

    pub(super) fn notification(&mut self, notification: &Notification) -> Effect {
        let params = notification
            .params
            .as_ref()
            .and_then(RawObject::of)
            .unwrap_or_default();
        match notification.method {
            Method::Cancelled => {
                let request = params
                    .get("requestId")
                    .and_then(|id| RequestId::from_json(&id).ok());
                let Some(request) = request else {
                    return Effect::None;
                };
                let reason = params.get("reason").and_then(|reason| reason.string());
                let reason = reason.map(|reason| shown(&reason, LONGEST_REASON));
                let reason = reason.unwrap_or_else(|| "cancelled by the client".to_owned());
                let slot = self.admitted.get(&request);
                if slot.is_none() {
                    if self.unmatched.len() >= MOST_UNMATCHED {
                        self.unmatched.pop_front();
                    }
                    self.unmatched.push_back((request, reason.clone()));
                }
                slot.map_or(Effect::None, |slot| Effect::Cancel { slot, reason })
            }
            _ => Effect::None,
        }
    }
}

fn in_use(request: &RequestId) -> Effect {
    let error = RpcError::invalid_request(format!(
        "the id {request} is in use by a request that has not been answered; use another"
    ));
    refuse(request, error)
}

fn refuse(request: &RequestId, error: RpcError) -> Effect {
    Effect::Respond(error_response(request, &error))
}

pub(crate) fn empty_result(request: &RequestId) -> bytes::Bytes {
    response(request, &RawJson::from_static("{}"))
}

fn string_param(request: &Request, name: &str) -> Result<String, RpcError> {
    request
        .params
        .as_ref()
        .and_then(|params| params.member(name))
        .and_then(|value| value.string())
        .ok_or_else(|| {
            RpcError::invalid_params(format!(
                "{}: params.{name} must be a string",
                request.method
            ))
        })
}

/// Returns the capability for a method that the session itself answers.
pub(crate) fn capability_of(method: &Method) -> Option<&'static str> {
    match method {
        Method::SetLevel => Some("logging"),
        Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => Some("resources"),
        _ => None,
    }
}

pub(crate) fn has_capability(facts: &ServerFacts, name: &str) -> bool {
    RawObject::of(&facts.capabilities).is_some_and(|capabilities| capabilities.has(name))
}
