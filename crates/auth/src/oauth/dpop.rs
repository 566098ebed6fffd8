//! Checks that a caller has its token's key (RFC 9449) or certificate (RFC 8705).

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use shoal_ports::{
    AuthError, ClientCertificate, Credentials, ProofFault, Scheme, TokenDigest, TokenFault,
};
use url::Url;

use super::claims::{TokenBinding, Verified};
use super::jws::Jws;
use super::keys::PublicKey;
use super::replays::{Proof, ProofShown, Replays, SLICE};
use crate::config::{Auth, Dpop, SigningAlgorithm};

const PROOF: usize = 4 << 10;
const NAME: usize = 256;
/// Maximum age of a proof besides the clock skew, for transport and waiting.
const FRESH: Duration = Duration::from_secs(60);
pub(crate) const ALGORITHMS: [SigningAlgorithm; 4] = [
    SigningAlgorithm::ES256,
    SigningAlgorithm::EdDSA,
    SigningAlgorithm::RS256,
    SigningAlgorithm::PS256,
];

pub(crate) struct Possession {
    mode: Dpop,
    resource: Url,
    path: String,
    skew: Duration,
    replays: Replays,
}

#[derive(Deserialize)]
pub(super) struct Claims {
    jti: String,
    htm: String,
    htu: String,
    iat: f64,
    #[serde(default)]
    ath: Option<String>,
}

impl Possession {
    pub(crate) fn new(auth: &Auth, resource: Url, path: String) -> Self {
        Self {
            mode: auth.dpop,
            resource,
            path,
            skew: auth.clock_skew.get(),
            replays: Replays::new(auth.dpop_bytes),
        }
    }

    /// Checks that the request proves the token's binding.
    ///
    /// # Errors
    /// The request does not prove the binding, a token that must be bound is not, or there is no room to remember the
    /// proof.
    pub(crate) fn check(
        &self,
        verified: &Verified,
        token: &TokenDigest,
        shown: &Credentials<'_>,
    ) -> Result<(), AuthError> {
        let scheme = shown.token.map(|(scheme, _)| scheme);
        let Some(TokenBinding::Key(bound_to)) = &verified.binding else {
            // The DPoP scheme needs a token that is bound to a key.
            return match (self.mode, scheme, &verified.binding) {
                (Dpop::Required, ..) | (_, Some(Scheme::Dpop), _) => {
                    Err(AuthError::Token(TokenFault::Unbound))
                }
                (.., Some(TokenBinding::Certificate(bound_to))) => {
                    expect_certificate(bound_to, shown)
                }
                _ => Ok(()),
            };
        };
        match (self.mode, scheme) {
            (Dpop::Off, _) => return Err(AuthError::Token(TokenFault::Binding)),
            (_, Some(Scheme::Dpop)) => {}
            _ => return Err(AuthError::Token(TokenFault::Bound)),
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs_f64();
        let (thumbprint, claims) =
            (self.read(bound_to, token, shown, now)).map_err(AuthError::Proof)?;
        let left = claims.iat + FRESH.as_secs_f64() + self.skew.as_secs_f64() - now;
        let seconds = |count: f64| Duration::try_from_secs_f64(count).unwrap_or_default();
        let proof = Proof {
            thumbprint,
            name: &claims.jti,
            date: seconds(claims.iat),
            left: seconds(left) + self.skew,
        };
        // Remember the proof even if a quota refuses the request, because the retry has a new proof, and this
        // one must not work again.
        match self.replays.show(&verified.principal, proof) {
            ProofShown::First => Ok(()),
            ProofShown::Again => Err(AuthError::Proof(ProofFault::Replayed)),
            ProofShown::Full => Err(AuthError::TooManyProofs { retry_after: SLICE }),
        }
    }

    pub(super) fn read(
        &self,
        bound_to: &str,
        token: &TokenDigest,
        shown: &Credentials<'_>,
        now: f64,
    ) -> Result<([u8; 32], Claims), ProofFault> {
        let proof = shown.proof.ok_or(ProofFault::Missing)?;
        let jws = Some(proof).filter(|proof| proof.len() <= PROOF);
        let jws = jws.and_then(Jws::of).ok_or(ProofFault::Malformed)?;
        if !jws.is_of_type(&["dpop+jwt"]) || jws.header.crit.is_some() {
            return Err(ProofFault::Malformed);
        }
        let algorithm = jws.algorithm(&ALGORITHMS).ok_or(ProofFault::Algorithm)?;
        let key = jws.header.jwk.as_ref().ok_or(ProofFault::Malformed)?;
        if key.is_private() {
            return Err(ProofFault::Malformed);
        }
        let public = PublicKey::of(key).ok_or(ProofFault::Malformed)?;
        if !jws.is_signed_by(&public, algorithm) {
            return Err(ProofFault::Signature);
        }
        let thumbprint = key.thumbprint().ok_or(ProofFault::Malformed)?;
        if URL_SAFE_NO_PAD.encode(thumbprint) != bound_to {
            return Err(ProofFault::Key);
        }
        let claims: Claims = jws.read().ok_or(ProofFault::Malformed)?;
        if !(1..=NAME).contains(&claims.jti.len()) {
            return Err(ProofFault::Malformed);
        }
        if claims.htm != shown.method || !self.is_of(&claims.htu, shown.path) {
            return Err(ProofFault::Request);
        }
        if claims.ath != Some(URL_SAFE_NO_PAD.encode(token)) {
            return Err(ProofFault::Token);
        }
        let skew = self.skew.as_secs_f64();
        let (oldest, newest) = (now - FRESH.as_secs_f64() - skew, now + skew);
        if !(oldest..=newest).contains(&claims.iat) {
            return Err(ProofFault::Time);
        }
        Ok((thumbprint, claims))
    }

    /// Whether the proof is for this server's public URL. The request's own host does not count.
    fn is_of(&self, htu: &str, path: &str) -> bool {
        let Ok(mut named) = Url::parse(htu) else {
            return false;
        };
        named.set_query(None);
        named.set_fragment(None);
        let mut due = self.resource.clone();
        if path != self.path {
            // A proxy may strip a prefix of the public path. The public URLs of other paths then have the same prefix.
            let public = due.path().strip_suffix(self.path.as_str()).unwrap_or("");
            due.set_path(&format!("{public}{path}"));
        }
        named == due
    }
}

fn expect_certificate(bound_to: &str, shown: &Credentials<'_>) -> Result<(), AuthError> {
    let is_it = |shown: &ClientCertificate| URL_SAFE_NO_PAD.encode(shown.sha256()) == bound_to;
    match shown.certificate.is_some_and(is_it) {
        true => Ok(()),
        false => Err(AuthError::Token(TokenFault::Certificate)),
    }
}
