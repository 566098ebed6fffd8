//! Which redirects are followed: those that leave a request what it is, within its origin. A server must not send Shoal's
//! credentials, or its requests, to others.

use http::{HeaderMap, Method, StatusCode, header};
use reqwest::{Response, Url};
use shoal_ports::shown;

/// Characters of a target that are shown.
const SHOWN: usize = 300;

/// Whether 301 and 302 keep a request of this method; the client cannot tell while it decides.
pub(super) fn may_move(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Where to send such a request again.
pub(super) fn moved(answer: &Response) -> Option<Url> {
    let moved = [StatusCode::MOVED_PERMANENTLY, StatusCode::FOUND];
    let target = target(answer.url(), answer.headers())?;
    (moved.contains(&answer.status()) && target.origin() == answer.url().origin()).then_some(target)
}

/// Where a redirect leads that was not followed, as it is shown.
pub(crate) fn redirect_target(answer: &Response) -> Option<String> {
    let redirects = answer.status().is_redirection();
    let mut to = target(answer.url(), answer.headers()).filter(|_| redirects)?;
    // They are no part of a setting that is printed and logged, and may be secrets.
    let _ = (to.set_username(""), to.set_password(None));
    to.set_query(None);
    to.set_fragment(None);
    Some(shown(to.as_str(), SHOWN))
}

fn target(from: &Url, headers: &HeaderMap) -> Option<Url> {
    let location = headers.get(header::LOCATION)?.to_str().ok()?;
    let target = from.join(location).ok()?;
    matches!(target.scheme(), "http" | "https").then_some(target)
}
