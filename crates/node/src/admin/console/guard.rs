//! Who may use the console.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use shoal_auth::TokenHash;

use super::super::refuse;
use crate::config::Secret;

/// What changes something must carry: no form and no page of another origin can send it.
pub(super) const ACTION: HeaderName = HeaderName::from_static("x-shoal-console");

/// Nothing but what this node serves; texts of clients are never markup, and if one were, it could not run.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

/// Decides who may use the console.
pub(super) struct Guard {
    token: Option<TokenHash>,
    on_this_machine: bool,
}

/// In whose name something is done, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct By(pub(super) &'static str);

impl Guard {
    pub(super) fn new(token: Option<Secret>, on_this_machine: bool) -> Self {
        Self {
            token: token.map(|token| TokenHash::of(token.expose())),
            on_this_machine,
        }
    }

    /// Whether there is a console at all.
    fn is_open(&self) -> bool {
        self.token.is_some() || self.on_this_machine
    }

    fn admit(&self, headers: &HeaderMap) -> Option<By> {
        let Some(token) = self.token else {
            return self.on_this_machine.then_some(By("this machine"));
        };
        let sent = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, sent) = sent.split_once(' ')?;
        // Hashes have one length, so that a comparison does not tell the token's.
        let right = TokenHash::of(sent.trim()) == token;
        (scheme.eq_ignore_ascii_case("bearer") && right).then_some(By("the admin token"))
    }
}

/// For the page and the API: closed where there is no protection, and strict about what a browser may do.
pub(super) async fn around_all(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match guard.is_open() {
        true => next.run(request).await,
        false => refuse(
            StatusCode::FORBIDDEN,
            "the console is closed: the admin port can be reached by other machines and no token is set; set \
             server.admin_token (SHOAL_SERVER__ADMIN_TOKEN='{ file = \"…\" }'), or let the admin port \
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

/// For the API: asks for the token, and for the header that only the page sends.
pub(super) async fn around_api(
    State(guard): State<Arc<Guard>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(by) = guard.admit(request.headers()) else {
        let mut response = refuse(
            StatusCode::UNAUTHORIZED,
            "send Authorization: Bearer with the token of server.admin_token",
        );
        let bearer = HeaderValue::from_static("Bearer");
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, bearer);
        return response;
    };
    let changes = request.method() != Method::GET && request.method() != Method::HEAD;
    if changes && !request.headers().contains_key(&ACTION) {
        return refuse(
            StatusCode::FORBIDDEN,
            "what changes something must carry the header X-Shoal-Console",
        );
    }
    request.extensions_mut().insert(by);
    next.run(request).await
}
