//! HTTP clients for tests.

/// Builds clients for plain HTTP without a proxy. Loading root certificates would cost half a second of CPU per
/// client in a debug build.
pub fn client() -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy().tls_certs_only([])
}
