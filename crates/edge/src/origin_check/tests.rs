use axum::extract::Request;

use super::OriginCheck;
use crate::config::EndpointConfig;
use crate::refusal::Refusal;

fn origin_check(hosts: &[&str], origins: &[&str]) -> OriginCheck {
    let owned = |list: &[&str]| list.iter().map(|entry| (*entry).to_owned()).collect();
    OriginCheck::new(&EndpointConfig {
        allowed_hosts: owned(hosts),
        allowed_origins: owned(origins),
        ..EndpointConfig::default()
    })
}

fn check(origin_check: &OriginCheck, host: &str, origin: Option<&str>) -> Result<(), Refusal> {
    let mut request = Request::builder().uri("/mcp").header("host", host);
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    origin_check.check(&head).map(|_| ())
}

#[test]
fn loopback_names_are_served_with_any_port() {
    let origin_check = origin_check(&[], &[]);
    for host in [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1:80",
        "127.8.9.1",
        "[::1]:8080",
        "[::1]",
    ] {
        assert!(check(&origin_check, host, None).is_ok(), "{host}");
    }
    for host in [
        "evil.example.com",
        "localhost.evil.com",
        "10.0.0.1:80",
        "",
        "127.0.0.1.nip.io",
    ] {
        assert!(check(&origin_check, host, None).is_err(), "{host}");
    }
}

#[test]
fn a_listed_host_may_name_its_port() {
    let origin_check = origin_check(&["mcp.example.com", "other.example.com:8443"], &[]);
    assert!(check(&origin_check, "MCP.example.com:9000", None).is_ok());
    assert!(check(&origin_check, "other.example.com:8443", None).is_ok());
    assert!(check(&origin_check, "other.example.com:80", None).is_err());
}

#[test]
fn a_loopback_page_may_call_a_loopback_host_only() {
    let origin_check = origin_check(&["mcp.example.com"], &[]);
    assert!(check(&origin_check, "localhost:1", Some("http://localhost:3000")).is_ok());
    assert!(check(&origin_check, "127.0.0.1:1", Some("http://[::1]:3000")).is_ok());
    assert!(
        check(
            &origin_check,
            "mcp.example.com",
            Some("http://localhost:3000")
        )
        .is_err()
    );
    for foreign in [
        "http://evil.com",
        "null",
        "https://mcp.example.com",
        "http://localhost.evil.com",
    ] {
        assert!(
            check(&origin_check, "localhost:1", Some(foreign)).is_err(),
            "{foreign}"
        );
    }
}

#[test]
fn a_listed_origin_may_call_any_served_host() {
    let origin_check = origin_check(&["*"], &["https://app.example.com"]);
    assert!(check(&origin_check, "whatever", Some("https://app.example.com")).is_ok());
    assert!(
        check(
            &origin_check,
            "whatever",
            Some("https://app.example.com:444")
        )
        .is_err()
    );
}

#[test]
fn a_page_of_a_listed_host_may_call_that_host() {
    let listed = origin_check(&["mcp.example.com", "b.example.com"], &[]);
    for (host, origin) in [
        ("mcp.example.com", "https://mcp.example.com"),
        ("MCP.example.com", "https://mcp.example.com:443"),
        ("mcp.example.com:80", "http://mcp.example.com"),
        ("mcp.example.com:8443", "https://mcp.example.com:8443"),
    ] {
        assert!(check(&listed, host, Some(origin)).is_ok(), "{origin}");
    }
    for (host, origin) in [
        ("mcp.example.com", "https://b.example.com"),
        ("mcp.example.com", "https://mcp.example.com:8443"),
        ("mcp.example.com", "https://mcp.example.com.evil.com"),
        ("mcp.example.com", "ftp://mcp.example.com"),
        ("mcp.example.com", "https://a.mcp.example.com"),
    ] {
        assert!(check(&listed, host, Some(origin)).is_err(), "{origin}");
    }
    // The wildcard admits a rebound name. The check still refuses the page's origin.
    let any = origin_check(&["*"], &[]);
    assert!(check(&any, "evil.com", Some("https://evil.com")).is_err());
}

#[test]
fn an_extension_may_call_if_it_is_listed() {
    let origin_check = origin_check(&[], &["chrome-extension://abcdef"]);
    assert!(
        check(
            &origin_check,
            "localhost",
            Some("chrome-extension://abcdef")
        )
        .is_ok()
    );
    assert!(check(&origin_check, "localhost", Some("chrome-extension://other")).is_err());
}

#[test]
fn an_absolute_uri_must_be_welcome_too() {
    let origin_check = origin_check(&[], &[]);
    let request = Request::builder()
        .uri("http://evil.example.com/mcp")
        .header("host", "localhost");
    let (head, ()) = request.body(()).unwrap().into_parts();
    assert!(origin_check.check(&head).is_err());
}

#[test]
fn an_origin_without_a_value_is_none() {
    let origin_check = origin_check(&["mcp.example.com"], &[]);
    for host in ["localhost", "mcp.example.com"] {
        assert!(check(&origin_check, host, Some("")).is_ok(), "{host}");
        assert!(check(&origin_check, host, Some("null")).is_err(), "{host}");
    }
    assert!(check(&origin_check, "evil.example.com", Some("")).is_err());
}
