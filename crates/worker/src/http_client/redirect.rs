//! Follows redirects that stay within the origin and keep the method. A server must not send
//! Shoal's credentials elsewhere.

use http::{HeaderMap, Method, StatusCode, header};
use reqwest::{Response, Url};
use shoal_ports::shown;

const SHOWN: usize = 300;

/// Whether a 301 or 302 keeps this method. The HTTP client's redirect policy does not see the
/// method.
pub(super) fn may_move(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

pub(super) fn moved(answer: &Response) -> Option<Url> {
    let moved = [StatusCode::MOVED_PERMANENTLY, StatusCode::FOUND];
    let target = target(answer.url(), answer.headers())?;
    (moved.contains(&answer.status()) && target.origin() == answer.url().origin()).then_some(target)
}

pub(crate) fn redirect_target(answer: &Response) -> Option<String> {
    let redirects = answer.status().is_redirection();
    let mut to = target(answer.url(), answer.headers()).filter(|_| redirects)?;
    // User name, password, query and fragment may be secrets.
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
