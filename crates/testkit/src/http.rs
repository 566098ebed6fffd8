//! HTTP clients for tests.

/// Builds clients that reach plain HTTP only, without a proxy. They load no root certificates: a debug build takes half a second of
/// CPU to read those of the system, and a test has hundreds of clients.
pub fn client() -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy().tls_certs_only([])
}
