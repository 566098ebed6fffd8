use bytes::Bytes;
use shoal_ports::CallId;
use shoal_protocol::{Body, Message, Notification, Request, RequestId, RpcError, error_response};

/// The request ends when the server has the notification.
pub(crate) fn as_request(said: Notification) -> Option<Request> {
    let Notification { method, params } = said;
    let carried = method.may_be_of_extension() && method.is_notification();
    carried.then(|| Request {
        id: RequestId::from_string(&format!("shoal/{}", CallId::generate())),
        method,
        params,
    })
}

/// Returns whether the body was an extension's notification. The request that carries it gets no
/// answer.
pub(crate) fn carried(body: Body) -> (Body, bool) {
    match body {
        Body::Single(Message::Notification(said)) => match as_request(said.clone()) {
            Some(request) => (Body::Single(Message::Request(request)), true),
            None => (Body::Single(Message::Notification(said)), false),
        },
        body => (body, false),
    }
}

/// Refuses a request with a notification's name, which the official SDKs do not know.
pub(crate) fn refusal(body: &Body) -> Option<Bytes> {
    match body {
        Body::Single(Message::Request(Request { id, method, .. }))
            if method.is_notification() && method.may_be_of_extension() =>
        {
            let unknown = RpcError::method_not_found(method.as_str());
            Some(error_response(id, &unknown))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use shoal_protocol::Body;

    #[test]
    fn a_request_by_the_name_of_a_notification_is_refused() {
        let refused = |text: &'static str| {
            super::refusal(&Body::parse(&Bytes::from_static(text.as_bytes()), 8).unwrap())
        };
        let refusal = refused(r#"{"jsonrpc":"2.0","id":5,"method":"notifications/odd"}"#).unwrap();
        let told = std::str::from_utf8(&refusal).unwrap();
        assert!(
            told.contains("-32601") && told.contains(r#""id":5"#),
            "{told}"
        );
        for served in [
            r#"{"jsonrpc":"2.0","method":"notifications/odd"}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"skills/list"}"#,
        ] {
            assert!(refused(served).is_none(), "{served}");
        }
    }
}
