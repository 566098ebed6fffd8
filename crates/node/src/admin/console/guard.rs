use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use shoal_auth::TokenHash;
use shoal_telemetry::audit::{self, Kind, keys};
use shoal_telemetry::trace::attributes;

use super::super::refuse;
use super::API;
use crate::config::{Operator, OperatorRole, Secret};

/// Every change requires this header, which forms and pages of other origins cannot send.
pub(super) const ACTION: HeaderName = HeaderName::from_static("x-shoal-console");

/// The page inserts clients' text as text only. If a script got in nevertheless, this policy would stop it.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

pub(super) struct OperatorGuard {
    /// By the token's hash, so that the time of a lookup reveals nothing about the tokens.
    operators: HashMap<TokenHash, By>,
    on_this_machine: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct By {
    pub(super) name: Arc<str>,
    role: OperatorRole,
}

impl By {
    fn operator(name: &str) -> Self {
        Self {
            name: name.into(),
            role: OperatorRole::Operator,
        }
    }
}

impl OperatorGuard {
    pub(super) fn new(token: Option<Secret>, named: &[Operator], on_this_machine: bool) -> Self {
        let token = token.map(|token| TokenHash::of(token.expose()));
        let token = token.map(|token| (token, By::operator("the admin token")));
        let named = named.iter().map(|operator| {
            let by = By {
                name: operator.name.as_str().into(),
                role: operator.role,
            };
            (operator.sha256, by)
        });
        Self {
            operators: token.into_iter().chain(named).collect(),
            on_this_machine,
        }
    }

    fn is_open(&self) -> bool {
        !self.operators.is_empty() || self.on_this_machine
    }

    fn admit(&self, headers: &HeaderMap) -> Option<By> {
        if self.operators.is_empty() {
            return (self.on_this_machine).then(|| By::operator("this machine"));
        }
        let sent = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, sent) = sent.split_once(' ')?;
        let known = self.operators.get(&TokenHash::of(sent.trim()));
        known
            .filter(|_| scheme.eq_ignore_ascii_case("bearer"))
            .cloned()
    }
}

/// `by` is `None` if the user is unknown.
fn tell(by: Option<&By>, method: &Method, path: &str, status: StatusCode) {
    audit::record(Kind::Admin, |event| {
        event
            .set_some(keys::ENDUSER_ID, by.map(|by| &*by.name))
            .set(attributes::HTTP_REQUEST_METHOD, method.as_str())
            .set(keys::URL_PATH, path)
            .set(
                attributes::HTTP_RESPONSE_STATUS_CODE,
                i64::from(status.as_u16()),
            );
    });
}

pub(super) async fn around_all(
    State(guard): State<Arc<OperatorGuard>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match guard.is_open() {
        true => next.run(request).await,
        false => refuse(
            StatusCode::FORBIDDEN,
            "the console is closed: the admin port can be reached by other machines and no token is set; set \
             server.operators, or server.admin_token (SHOAL_SERVER__ADMIN_TOKEN='{ file = \"…\" }'), or let the admin port \
             listen on 127.0.0.1 with no server.admin_hosts",
        ),
    };
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            HeaderValue::from_static("same-origin"),
        ),
    ];
    response.headers_mut().extend(fixed);
    response
}

/// Requires a token, if any is configured, and [`ACTION`] for changes. Audits changes and refusals.
pub(super) async fn around_api(
    State(guard): State<Arc<OperatorGuard>>,
    request: Request,
    next: Next,
) -> Response {
    let by = guard.admit(request.headers());
    let path = format!("{API}{}", request.uri().path());
    let method = request.method().clone();
    let changes = method != Method::GET && method != Method::HEAD;
    let response = admitted(by.clone(), changes, request, next).await;
    let status = response.status();
    let refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if changes || refused {
        tell(by.as_ref(), &method, &path, status);
    }
    response
}

async fn admitted(by: Option<By>, changes: bool, mut request: Request, next: Next) -> Response {
    let Some(by) = by else {
        let mut response = refuse(
            StatusCode::UNAUTHORIZED,
            "send Authorization: Bearer with the token of server.admin_token, or of one of server.operators",
        );
        let bearer = HeaderValue::from_static("Bearer");
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, bearer);
        return response;
    };
    if changes && by.role == OperatorRole::Viewer {
        return refuse(
            StatusCode::FORBIDDEN,
            "a viewer changes nothing: that takes the role operator (server.operators)",
        );
    }
    if changes && !request.headers().contains_key(&ACTION) {
        return refuse(
            StatusCode::FORBIDDEN,
            "what changes something must carry the header X-Shoal-Console",
        );
    }
    request.extensions_mut().insert(by);
    next.run(request).await
}
