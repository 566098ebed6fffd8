//! HTTP clients for tests.

/// Returns a builder of clients for plain HTTP without a proxy. The clients load no root certificates, because that costs
/// half a second of CPU per client in a debug build.
pub fn client() -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy().tls_certs_only([])
}
