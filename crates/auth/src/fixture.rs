//! An authorization server for tests, over HTTP on loopback. Tests sign tokens themselves.
#![allow(clippy::unwrap_used, reason = "a failed step is the report of a test")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, StatusCode, Uri};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio_util::task::AbortOnDropHandle;

/// A running authorization server.
pub struct AuthorizationServer {
    /// This server's issuer identifier.
    pub issuer: String,
    shared: Arc<IssuerState>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct IssuerState {
    issuer: Mutex<String>,
    keys: Mutex<String>,
    is_down: Mutex<bool>,
    fetches: AtomicUsize,
    introspections: AtomicUsize,
    told: Mutex<HashMap<String, Told>>,
    asked: Mutex<Vec<String>>,
    silent_about: Mutex<Option<String>>,
    tokens: Mutex<HashMap<String, Value>>,
}

/// A fixed answer.
#[derive(Clone, Debug)]
pub struct Told {
    status: StatusCode,
    location: Option<String>,
    body: String,
}

impl Told {
    /// Makes an answer.
    pub fn new(status: u16, body: impl Into<String>) -> Self {
        Self {
            status: StatusCode::from_u16(status).unwrap(),
            location: None,
            body: body.into(),
        }
    }

    /// Makes a redirect.
    pub fn moved(status: u16, to: &str) -> Self {
        let location = Some(to.to_owned());
        Self {
            location,
            ..Self::new(status, "")
        }
    }
}

/// Shoal's name and secret for introspection, sent by `Authorization: Basic`.
pub const CLIENT: (&str, &str) = ("shoal", "open sesame");

impl AuthorizationServer {
    /// Starts a server on a free port, with these published keys.
    pub async fn start(keys: &[&SigningKey]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(IssuerState::default());
        (*shared.issuer.lock()).clone_from(&issuer);
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let serving = async move { axum::serve(listener, router).await.unwrap() };
        let server = Self {
            issuer,
            shared,
            _task: AbortOnDropHandle::new(tokio::spawn(serving)),
        };
        server.publish(keys);
        server
    }

    /// Replaces the published keys.
    pub fn publish(&self, keys: &[&SigningKey]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
        self.publish_text(json!({ "keys": keys }).to_string());
    }

    /// Replaces the published keys by a text.
    pub fn publish_text(&self, text: String) {
        *self.shared.keys.lock() = text;
    }

    /// Changes the issuer in the metadata.
    pub fn claim(&self, issuer: &str) {
        issuer.clone_into(&mut self.shared.issuer.lock());
    }

    /// Sets a path's answer.
    pub fn tell(&self, path: &str, told: Told) {
        self.shared.told.lock().insert(path.to_owned(), told);
    }

    /// Publishes metadata of `issuer` at this path only.
    pub fn describe(&self, path: &str, issuer: &str) {
        self.tell(
            "/.well-known/oauth-authorization-server",
            Told::new(404, ""),
        );
        let metadata = json!({ "issuer": issuer, "jwks_uri": format!("{}/jwks", self.issuer) });
        self.tell(path, Told::new(200, metadata.to_string()));
    }

    /// Returns the requested paths, in order.
    pub fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().clone()
    }

    /// Makes the server answer every request with 503, or stop that.
    pub fn set_down(&self, is_down: bool) {
        *self.shared.is_down.lock() = is_down;
    }

    /// Makes introspection hang for tokens with this prefix.
    pub fn hang_on(&self, prefix: &str) {
        *self.shared.silent_about.lock() = Some(prefix.to_owned());
    }

    /// Counts requests for keys.
    pub fn fetches(&self) -> usize {
        self.shared.fetches.load(Ordering::SeqCst)
    }

    /// Counts introspections.
    pub fn introspections(&self) -> usize {
        self.shared.introspections.load(Ordering::SeqCst)
    }

    /// Sets a token's introspection. All other tokens are inactive.
    pub fn say(&self, token: &str, answer: Value) {
        self.shared.tokens.lock().insert(token.to_owned(), answer);
    }

    /// Returns valid claims for a resource.
    pub fn claims(&self, resource: &str) -> Value {
        json!({
            "iss": self.issuer, "aud": resource, "sub": "alice", "scope": "mcp",
            "iat": now(), "exp": now() + 600, "jti": format!("{:x}", rand::random::<u64>()),
        })
    }
}

async fn answer(
    State(shared): State<Arc<IssuerState>>,
    at: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    shared.asked.lock().push(at.path().to_owned());
    let told = shared.told.lock().get(at.path()).cloned();
    if let Some(Told {
        status,
        location,
        body,
    }) = told
    {
        let location = location.map(|to| [("location", to)]);
        return match location {
            Some(location) => (status, location, body).into_response(),
            None => (status, body).into_response(),
        };
    }
    match at.path() {
        "/.well-known/oauth-authorization-server" => metadata(&shared),
        "/jwks" => jwks(&shared),
        "/introspect" => introspect(&shared, &headers, &body).await,
        "/tokeninfo" => token_info(&shared, &body),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn metadata(shared: &IssuerState) -> Response {
    if *shared.is_down.lock() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let issuer = shared.issuer.lock().clone();
    let metadata = json!({
        "issuer": issuer,
        "jwks_uri": format!("{issuer}/jwks"),
        "introspection_endpoint": format!("{issuer}/introspect"),
    });
    axum::Json(metadata).into_response()
}

fn jwks(shared: &IssuerState) -> Response {
    shared.fetches.fetch_add(1, Ordering::SeqCst);
    if *shared.is_down.lock() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    shared.keys.lock().clone().into_response()
}

fn token_info(shared: &IssuerState, form: &[u8]) -> Response {
    shared.introspections.fetch_add(1, Ordering::SeqCst);
    let token = of_form(form, "access_token");
    let known = shared.tokens.lock().get(&token).cloned();
    let unknown = json!({ "error": "invalid_token", "error_description": "Invalid Value" });
    match known {
        Some(known) => axum::Json(known).into_response(),
        None => (StatusCode::BAD_REQUEST, axum::Json(unknown)).into_response(),
    }
}

fn of_form(form: &[u8], member: &str) -> String {
    let mut form = url::form_urlencoded::parse(form);
    let found = form.find(|(name, _)| name == member);
    found
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

async fn introspect(shared: &IssuerState, headers: &HeaderMap, form: &[u8]) -> Response {
    shared.introspections.fetch_add(1, Ordering::SeqCst);
    if *shared.is_down.lock() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let (name, secret) = CLIENT;
    let encoded = secret.replace(' ', "+");
    let due = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{encoded}"));
    if headers
        .get("authorization")
        .map(http::HeaderValue::as_bytes)
        != Some(format!("Basic {due}").as_bytes())
    {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let token = of_form(form, "token");
    let silent_about = shared.silent_about.lock().clone();
    if silent_about.is_some_and(|prefix| token.starts_with(&prefix)) {
        std::future::pending::<()>().await;
    }
    let known = shared.tokens.lock().get(&token).cloned();
    axum::Json(known.unwrap_or_else(|| json!({ "active": false }))).into_response()
}

/// Makes a token without a signature.
pub fn unsigned(header: &str, claims: &str) -> String {
    let text = |part: &str| URL_SAFE_NO_PAD.encode(part);
    format!("{}.{}", text(header), text(claims))
}

/// Returns the seconds since 1970.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap().as_secs()
}

/// A signing key.
pub struct SigningKey {
    kid: String,
    pair: IssuerKeyPair,
}

enum IssuerKeyPair {
    Es256(Box<EcdsaKeyPair>),
    Ed25519(Box<Ed25519KeyPair>),
    Rs256(Box<RsaKeyPair>),
}

impl SigningKey {
    /// Generates a P-256 key.
    pub fn es256(kid: &str) -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        Self::of(kid, IssuerKeyPair::Es256(Box::new(pair)))
    }

    /// Generates an Ed25519 key.
    pub fn ed25519(kid: &str) -> Self {
        Self::of(
            kid,
            IssuerKeyPair::Ed25519(Box::new(Ed25519KeyPair::generate().unwrap())),
        )
    }

    /// Generates an RSA key.
    pub fn rs256(kid: &str) -> Self {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        Self::of(kid, IssuerKeyPair::Rs256(Box::new(pair)))
    }

    fn of(kid: &str, pair: IssuerKeyPair) -> Self {
        let kid = kid.to_owned();
        Self { kid, pair }
    }

    fn algorithm(&self) -> &'static str {
        match self.pair {
            IssuerKeyPair::Es256(_) => "ES256",
            IssuerKeyPair::Ed25519(_) => "EdDSA",
            IssuerKeyPair::Rs256(_) => "RS256",
        }
    }

    /// Returns the public key.
    pub fn jwk(&self) -> Value {
        let mut key = self.bare_jwk();
        key["kid"] = json!(self.kid);
        key["use"] = json!("sig");
        key["alg"] = json!(self.algorithm());
        key
    }

    fn bare_jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.pair {
            IssuerKeyPair::Es256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "crv": "P-256", "kty": "EC", "x": text(x), "y": text(y) })
            }
            IssuerKeyPair::Ed25519(pair) => {
                json!({ "crv": "Ed25519", "kty": "OKP", "x": text(pair.public_key().as_ref()) })
            }
            IssuerKeyPair::Rs256(pair) => {
                let key = pair.public_key();
                let n = text(key.modulus().big_endian_without_leading_zero());
                let e = text(key.exponent().big_endian_without_leading_zero());
                json!({ "e": e, "kty": "RSA", "n": n })
            }
        }
    }

    /// Signs an access token.
    pub fn token(&self, claims: &Value) -> String {
        let header = json!({ "alg": self.algorithm(), "kid": self.kid, "typ": "at+jwt" });
        self.sign(&header, claims)
    }

    /// Signs a header and claims.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    /// Signs texts, which need not be JSON.
    pub fn sign_text(&self, header: &str, claims: &str) -> String {
        let signed = unsigned(header, claims);
        let random = SystemRandom::new();
        let signature = match &self.pair {
            IssuerKeyPair::Es256(pair) => {
                let signature = pair.sign(&random, signed.as_bytes()).unwrap();
                signature.as_ref().to_vec()
            }
            IssuerKeyPair::Ed25519(pair) => pair.sign(signed.as_bytes()).as_ref().to_vec(),
            IssuerKeyPair::Rs256(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let made = pair.sign(
                    &RSA_PKCS1_SHA256,
                    &random,
                    signed.as_bytes(),
                    &mut signature,
                );
                made.unwrap();
                signature
            }
        };
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Makes a token whose HMAC secret is the published public key.
    pub fn confused(&self, header: &str, claims: &str) -> String {
        let signed = unsigned(header, claims);
        let secret = hmac::Key::new(hmac::HMAC_SHA256, self.bare_jwk().to_string().as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&secret, signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    /// Returns the public key's thumbprint.
    pub fn thumbprint(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.bare_jwk().to_string()))
    }

    /// Returns a DPoP proof's claims for a request.
    pub fn proof_claims(method: &str, url: &str, token: &str) -> Value {
        json!({
            "jti": format!("{:x}", rand::random::<u128>()), "htm": method, "htu": url, "iat": now(),
            "ath": URL_SAFE_NO_PAD.encode(Sha256::digest(token)),
        })
    }

    /// Signs a DPoP proof.
    pub fn proof(&self, claims: &Value) -> String {
        let header = json!({ "alg": self.algorithm(), "typ": "dpop+jwt", "jwk": self.bare_jwk() });
        self.sign(&header, claims)
    }
}
