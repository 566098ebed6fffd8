use shoal_edge::HTTP_SSE_PATHS;

use super::{Broken, Role, Settings};

pub(super) fn path(settings: &Settings, broken: &mut Broken) {
    let path = settings.server.endpoint.path.as_str();
    let plain = path
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte));
    if path.len() > 1 && path.starts_with('/') && !path.ends_with('/') && plain {
        return;
    }
    broken.add(
        "server.path",
        format!(
            "{path:?} is no path such as \"/mcp\": a slash, then letters, digits, - _ . ~ or /"
        ),
    );
}

pub(super) fn own_paths(settings: &Settings, broken: &mut Broken) {
    let endpoint = &settings.server.endpoint;
    let path = endpoint.path.as_str();
    if !endpoint.http_sse || !HTTP_SSE_PATHS.contains(&path) {
        return;
    }
    broken.add(
        "server.path",
        format!(
            "{path:?} is where HTTP+SSE is served (server.http_sse = true): choose another path such as \"/mcp\", or \
             set server.http_sse = false"
        ),
    );
}

pub(super) fn addresses(settings: &Settings, broken: &mut Broken) {
    let server = &settings.server;
    let same = server.listen == server.admin && server.admin.port() != 0;
    if !same || !settings.node.is(Role::Edge) {
        return;
    }
    broken.add(
        "server.admin",
        format!(
            "{} is server.listen too: clients and operators need a port each",
            server.admin
        ),
    );
}

/// Checks names of hosts and origins. A name that no header can contain would exclude the clients that it is meant for.
pub(super) fn names(settings: &Settings, broken: &mut Broken) {
    let server = &settings.server;
    let hosts = [
        ("server.allowed_hosts", &server.endpoint.allowed_hosts),
        ("server.admin_hosts", &server.admin_hosts),
    ];
    for (setting, names) in hosts {
        for name in names {
            if is_pattern(name) {
                broken.add(setting, no_pattern(name));
            } else if !is_host(name) {
                let reason = format!(
                    "{name:?} is no name as in the Host header, such as \"mcp.example.com\" or \"mcp.example.com:8443\": \
                     leave out the scheme and the path"
                );
                broken.add(setting, reason);
            }
        }
    }
    for text in &server.endpoint.allowed_origins {
        let host = text.split_once("://").map(|(_, host)| host);
        if is_pattern(text) {
            broken.add("server.allowed_origins", no_pattern(text));
        } else if text != "*" && text != "null" && !host.is_some_and(is_host) {
            let reason = format!(
                "{text:?} is no origin as a browser sends it, such as \"https://app.example.com\": a scheme and a host, \
                 with nothing behind them"
            );
            broken.add("server.allowed_origins", reason);
        }
    }
}

/// Shoal compares whole names, so `*` cannot stand for a part of one.
fn is_pattern(name: &str) -> bool {
    name != "*" && name.contains('*')
}

fn no_pattern(name: &str) -> String {
    format!(
        "{name:?} would match nothing: * does not stand for a part of a name, so list each name, or use \"*\" for any"
    )
}

fn is_host(name: &str) -> bool {
    let unfit = |byte: u8| byte.is_ascii_whitespace() || b"/?#@".contains(&byte);
    !name.is_empty() && !name.bytes().any(unfit)
}
