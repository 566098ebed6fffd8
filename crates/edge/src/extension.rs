//! Notifications of extensions, which go to the server that declares the extension.

use shoal_ports::CallId;
use shoal_protocol::{Body, Message, Notification, Request, RequestId};

/// The call that carries a notification of an extension: it ends when the server has it. `None` for any other notification.
pub(crate) fn as_request(said: Notification) -> Option<Request> {
    let Notification { method, params } = said;
    let carried = method.may_be_of_extension() && method.is_notification();
    carried.then(|| Request {
        id: RequestId::from_string(&format!("shoal/{}", CallId::generate())),
        method,
        params,
    })
}

/// The same for a whole body. Also whether it was a notification, which has no answer.
pub(crate) fn carried(body: Body) -> (Body, bool) {
    match body {
        Body::Single(Message::Notification(said)) => match as_request(said.clone()) {
            Some(request) => (Body::Single(Message::Request(request)), true),
            None => (Body::Single(Message::Notification(said)), false),
        },
        body => (body, false),
    }
}
