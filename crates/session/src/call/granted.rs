//! Combines a session's client with the headers and the grant of one request.

use std::sync::Arc;

use parking_lot::Mutex;
use shoal_ports::{Caller, SessionRef};

/// The caller built for the last request with a grant. Requests with the same grant reuse it.
#[derive(Default)]
pub(crate) struct GrantedCaller(Mutex<Option<Granted>>);

struct Granted {
    of: Arc<Caller>,
    caller: Arc<Caller>,
}

impl GrantedCaller {
    pub(crate) fn with(&self, client: Arc<Caller>, to: &SessionRef) -> Arc<Caller> {
        let with = || {
            Arc::new(Caller {
                headers: to.headers.clone(),
                grant: to.grant.clone(),
                ..(*client).clone()
            })
        };
        match (&to.grant, to.headers.is_empty()) {
            (None, true) => client,
            (_, false) => with(),
            (Some(_), true) => {
                let mut last = self.0.lock();
                let is_same = |last: &&Granted| {
                    Arc::ptr_eq(&last.of, &client) && last.caller.grant == to.grant
                };
                if let Some(last) = last.as_ref().filter(is_same) {
                    return Arc::clone(&last.caller);
                }
                let caller = with();
                *last = Some(Granted {
                    of: client,
                    caller: Arc::clone(&caller),
                });
                caller
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use shoal_ports::{Caller, ForwardedHeaders, Grant, Memo, Principal, SessionId, SessionRef};
    use shoal_protocol::{RawJson, Revision};

    use super::GrantedCaller;

    fn client() -> Arc<Caller> {
        Arc::new(Caller {
            principal: Principal::new("alice"),
            session: Some(SessionId::new("s")),
            revision: Revision::LATEST_LEGACY,
            client_info: None,
            capabilities: RawJson::from_static("{}"),
            headers: ForwardedHeaders::default(),
            grant: None,
        })
    }

    fn to(scope: Option<&str>) -> SessionRef {
        let grant = scope.map(|scope| {
            Arc::new(Grant {
                scopes: [scope.into()].into(),
                claims: RawJson::from_static("{}"),
                until: None,
                read: Memo::default(),
            })
        });
        SessionRef {
            grant,
            ..SessionRef::new(SessionId::new("s"), Principal::new("alice"))
        }
    }

    #[test]
    fn each_request_has_its_own_grant_whichever_came_before() {
        let (granted, client) = (GrantedCaller::default(), client());
        for scope in [Some("a"), Some("a"), None, Some("b"), Some("a")] {
            let to = to(scope);
            assert_eq!(granted.with(client.clone(), &to).grant, to.grant);
        }
        let [first, second] = [(); 2].map(|()| granted.with(client.clone(), &to(Some("a"))));
        assert!(Arc::ptr_eq(&first, &second));
        let mut other = client.clone();
        Arc::make_mut(&mut other).revision = Revision::V2024_11_05;
        assert_eq!(
            granted.with(other, &to(Some("a"))).revision,
            Revision::V2024_11_05
        );
    }

    #[test]
    fn headers_are_of_one_request() {
        let (granted, client) = (GrantedCaller::default(), client());
        let mut with_header = to(Some("a"));
        let header = ("x-key".into(), Bytes::from_static(b"secret"));
        with_header.headers = ForwardedHeaders::new([header]);
        assert!(
            !granted
                .with(client.clone(), &with_header)
                .headers
                .is_empty()
        );
        assert!(granted.with(client, &to(Some("a"))).headers.is_empty());
    }
}
