use std::borrow::Cow;

/// Returns a form for comparison, which normalises the case of a URL's scheme and host, the default port and an empty
/// path (RFC 3986, 6.2.3). The rest stays, because issuers may distinguish `/a`, `/a/` and `/%61`.
pub(crate) fn canonical(name: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = name.split_once("://") else {
        return name.into();
    };
    let scheme = scheme.to_ascii_lowercase();
    let port = match scheme.as_str() {
        "https" => ":443",
        "http" => ":80",
        _ => return name.into(),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = host.strip_suffix(port).unwrap_or(host).to_ascii_lowercase();
    let root = if path.starts_with('/') { "" } else { "/" };
    format!("{scheme}://{host}{root}{path}").into()
}

pub(crate) fn same(one: &str, other: &str) -> bool {
    one == other || canonical(one) == canonical(other)
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn urls_are_compared_as_urls_and_in_everything_else_as_texts() {
        for (one, other) in [
            ("https://h.example", "https://h.example/"),
            ("https://H.Example/mcp", "https://h.example/mcp"),
            ("HTTPS://h.example/mcp", "https://h.example/mcp"),
            ("https://h.example:443/mcp", "https://h.example/mcp"),
            ("https://h.example:443", "https://h.example/"),
            ("http://[::1]:80", "http://[::1]/"),
            ("https://h.example?a", "https://h.example/?a"),
            ("api://default", "api://default"),
        ] {
            assert!(same(one, other) && same(other, one), "{one} {other}");
        }
        for (one, other) in [
            ("https://h.example/mcp", "https://h.example/mcp/"),
            ("https://h.example/mcp", "https://h.example/MCP"),
            ("https://h.example/a/../mcp", "https://h.example/mcp"),
            ("https://h.example/%6dcp", "https://h.example/mcp"),
            ("https://h.example//mcp", "https://h.example/mcp"),
            ("https://h.example/mcp?", "https://h.example/mcp"),
            ("https://h.example/mcp#a", "https://h.example/mcp"),
            ("https://h.example", "http://h.example"),
            ("https://h.example:80", "https://h.example"),
            ("https://h.example:8443", "https://h.example"),
            ("https://h.example.", "https://h.example"),
            ("https://user@h.example", "https://h.example"),
            ("https:\\\\h.example", "https://h.example"),
            (" https://h.example", "https://h.example"),
            ("https://127.1", "https://127.0.0.1"),
            ("h.example", "https://h.example"),
            ("api://default", "api://default/"),
            ("api://Default", "api://default"),
            ("Account", "account"),
            ("", "https://h.example"),
        ] {
            assert!(!same(one, other) && !same(other, one), "{one} {other}");
        }
    }
}
