//! A connection's cookies, by which load balancers keep a session at its server.

use cookie_store::{Cookie, CookieStore};
use http::{HeaderMap, HeaderValue, header};
use parking_lot::Mutex;
use reqwest::Url;

/// Maximum bytes of all cookies, because servers limit the size of headers.
const MOST_BYTES: usize = 4096;

#[derive(Default)]
pub(super) struct Cookies(Mutex<CookieStore>);

impl Cookies {
    pub(super) fn take(&self, url: &Url, answer: &HeaderMap) {
        let set = answer.get_all(header::SET_COOKIE);
        for set in set.iter().filter_map(|set| set.to_str().ok()) {
            let Ok(cookie) = Cookie::parse(set, url) else {
                continue;
            };
            let mut kept = self.0.lock();
            remove_expired(&mut kept);
            let bytes: usize = kept.iter_any().map(|kept| kept.to_string().len()).sum();
            let domain = String::from(&cookie.domain);
            let replaced = kept.get_any(&domain, &cookie.path, cookie.name());
            let others = bytes - replaced.map_or(0, |replaced| replaced.to_string().len());
            if !cookie.is_expired() && others + cookie.to_string().len() > MOST_BYTES {
                tracing::debug!(target: "shoal::http", %url, "a cookie is not kept: there is no room");
                continue;
            }
            let _ = kept.insert(cookie.into_owned(), url);
        }
    }

    pub(super) fn add(&self, url: &Url, headers: &mut HeaderMap) {
        let kept = self.0.lock();
        let own = kept.get_request_values(url);
        let own: Vec<String> = own.map(|(name, value)| format!("{name}={value}")).collect();
        if own.is_empty() {
            return;
        }
        // The operator's cookies come first, and may hold bytes that are not ASCII.
        let given = headers.get(header::COOKIE).map(HeaderValue::as_bytes);
        let own = own.iter().map(String::as_bytes);
        let all: Vec<&[u8]> = given.into_iter().chain(own).collect();
        if let Ok(mut all) = HeaderValue::from_bytes(&all.join(&b"; "[..])) {
            all.set_sensitive(true);
            headers.insert(header::COOKIE, all);
        }
    }
}

fn remove_expired(kept: &mut CookieStore) {
    let expired = kept.iter_any().filter(|cookie| cookie.is_expired());
    let names = expired.map(|cookie| {
        let (domain, path) = (String::from(&cookie.domain), String::from(&cookie.path));
        (domain, path, cookie.name().to_owned())
    });
    for (domain, path, name) in names.collect::<Vec<_>>() {
        kept.remove(&domain, &path, &name);
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

    #[test]
    fn a_cookie_that_is_replaced_or_has_expired_takes_no_room() {
        let cookies = Cookies::default();
        let large = |name: &str, letter: &str| format!("{name}={}", letter.repeat(3000));
        for cookie in [large("a", "1"), large("a", "2")] {
            set(&cookies, MCP, &[&cookie]);
            assert_eq!(sent(&cookies, MCP, ""), cookie);
        }
        set(&cookies, MCP, &["a=; Max-Age=0", &large("b", "3")]);
        assert_eq!(sent(&cookies, MCP, ""), large("b", "3"));
        assert_eq!(cookies.0.lock().iter_any().count(), 1);
    }

    #[test]
    fn an_operators_cookie_may_have_any_bytes() {
        let cookies = Cookies::default();
        set(&cookies, MCP, &["lb=1"]);
        let given = HeaderValue::from_bytes(b"own=\xe4").unwrap();
        let mut headers = HeaderMap::from_iter([(header::COOKIE, given)]);
        cookies.add(&url(MCP), &mut headers);
        assert_eq!(headers[header::COOKIE].as_bytes(), b"own=\xe4; lb=1");
    }
}
