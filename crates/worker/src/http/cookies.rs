//! The cookies of one connection: load balancers keep a session at its server by them.

use cookie_store::CookieStore;
use http::{HeaderMap, HeaderValue, header};
use parking_lot::Mutex;
use reqwest::Url;

/// Bytes of all cookies together: servers take no much longer head.
const MOST_BYTES: usize = 4096;

/// The cookies that the server has set in its answers to this connection's requests. They are in memory as long as the connection lives.
#[derive(Default)]
pub(super) struct Cookies(Mutex<CookieStore>);

impl Cookies {
    /// Keeps those of an answer from this URL, as far as there is room.
    pub(super) fn take(&self, url: &Url, answer: &HeaderMap) {
        let set = answer.get_all(header::SET_COOKIE);
        for cookie in set.iter().filter_map(|set| set.to_str().ok()) {
            let mut kept = self.0.lock();
            let bytes: usize = kept.iter_any().map(|cookie| cookie.to_string().len()).sum();
            if bytes + cookie.len() > MOST_BYTES {
                tracing::debug!(target: "shoal::http", %url, "a cookie is not kept: there is no room");
                continue;
            }
            // The store refuses a cookie that it cannot read, or that names another site.
            let _ = kept.parse(cookie, url);
        }
    }

    /// Adds those that a request to this URL brings to its headers.
    pub(super) fn add(&self, url: &Url, headers: &mut HeaderMap) {
        let kept = self.0.lock();
        let own = kept.get_request_values(url);
        let mut all: Vec<String> = own.map(|(name, value)| format!("{name}={value}")).collect();
        if all.is_empty() {
            return;
        }
        // The operator's own come first.
        let given = headers.get(header::COOKIE);
        all.splice(
            0..0,
            given
                .and_then(|given| given.to_str().ok())
                .map(str::to_owned),
        );
        if let Ok(mut all) = HeaderValue::try_from(all.join("; ")) {
            all.set_sensitive(true);
            headers.insert(header::COOKIE, all);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};

    use super::{Cookies, MOST_BYTES};

    fn url(text: &str) -> reqwest::Url {
        text.parse().unwrap()
    }

    fn set(cookies: &Cookies, at: &str, lines: &[&str]) {
        let set = lines
            .iter()
            .map(|line| (header::SET_COOKIE, HeaderValue::from_str(line).unwrap()));
        cookies.take(&url(at), &set.collect());
    }

    fn sent(cookies: &Cookies, to: &str, given: &'static str) -> String {
        let mut headers = HeaderMap::new();
        if !given.is_empty() {
            headers.insert(header::COOKIE, HeaderValue::from_static(given));
        }
        cookies.add(&url(to), &mut headers);
        let sent = headers
            .get(header::COOKIE)
            .map(|sent| sent.to_str().unwrap());
        sent.unwrap_or_default().to_owned()
    }

    const MCP: &str = "https://a.example/mcp";

    #[test]
    fn a_cookie_goes_back_where_it_came_from() {
        let cookies = Cookies::default();
        set(
            &cookies,
            MCP,
            &[
                "lb=1; Path=/; Secure; HttpOnly",
                "foreign=1; Domain=b.example",
            ],
        );
        assert_eq!(sent(&cookies, MCP, ""), "lb=1");
        assert_eq!(sent(&cookies, MCP, "own=2"), "own=2; lb=1");
        assert_eq!(sent(&cookies, "http://a.example/mcp", ""), "");
        assert_eq!(sent(&cookies, "https://b.example/mcp", ""), "");
        set(&cookies, MCP, &["lb=2; Path=/"]);
        assert_eq!(sent(&cookies, MCP, ""), "lb=2");
        set(&cookies, MCP, &["lb=; Path=/; Max-Age=0"]);
        assert_eq!(sent(&cookies, MCP, ""), "");
    }

    #[test]
    fn cookies_have_a_limit_in_bytes() {
        let cookies = Cookies::default();
        for number in 0..100 {
            set(&cookies, MCP, &[&format!("c{number}={}", "x".repeat(1000))]);
        }
        let all = sent(&cookies, MCP, "");
        assert!(
            all.starts_with('c') && all.len() < MOST_BYTES,
            "{}",
            all.len()
        );
    }
}
