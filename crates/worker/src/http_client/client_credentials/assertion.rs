//! Client authentication by a signed JWT (`private_key_jwt`, RFC 7523).

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::json;

/// In seconds; allows for clock differences.
const GOOD_FOR: u64 = 300;

enum AssertionKey {
    Ecdsa(&'static str, EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

/// Signs an assertion with a PEM private key.
///
/// # Errors
/// The key is unusable; the message does not reveal it.
pub(super) fn sign(
    pem: &str,
    key_id: &str,
    client: &str,
    audience: &str,
) -> Result<String, String> {
    let key = AssertionKey::read(pem).ok_or(
        "private_key_file holds no private key that Shoal can sign with: use an unencrypted key in PEM, on P-256 or P-384, Ed25519, or RSA",
    )?;
    let mut header = json!({ "alg": key.algorithm(), "typ": "JWT" });
    if !key_id.is_empty() {
        header["kid"] = key_id.into();
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_secs());
    let claims = json!({
        "iss": client,
        "sub": client,
        "aud": audience,
        "jti": uuid::Uuid::new_v4().to_string(),
        "iat": now,
        "exp": now + GOOD_FOR,
    });
    let encoded = |part: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(part);
    let (header, claims) = (header.to_string(), claims.to_string());
    let signed = format!(
        "{}.{}",
        encoded(header.as_bytes()),
        encoded(claims.as_bytes())
    );
    let signature = key
        .sign(signed.as_bytes())
        .ok_or("the private key cannot sign")?;
    Ok(format!("{signed}.{}", encoded(&signature)))
}

impl AssertionKey {
    fn read(pem: &str) -> Option<Self> {
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).ok()?;
        let bytes = der.secret_der();
        let ecdsa = |name, algorithm: &'static EcdsaSigningAlgorithm| {
            let pair = EcdsaKeyPair::from_private_key_der(algorithm, bytes)
                .or_else(|_| EcdsaKeyPair::from_pkcs8(algorithm, bytes));
            pair.ok().map(|pair| Self::Ecdsa(name, pair))
        };
        let rsa = || {
            RsaKeyPair::from_pkcs8(bytes)
                .or_else(|_| RsaKeyPair::from_der(bytes))
                .ok()
        };
        ecdsa("ES256", &ECDSA_P256_SHA256_FIXED_SIGNING)
            .or_else(|| ecdsa("ES384", &ECDSA_P384_SHA384_FIXED_SIGNING))
            .or_else(|| Ed25519KeyPair::from_pkcs8(bytes).ok().map(Self::Ed25519))
            .or_else(|| rsa().map(Self::Rsa))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Ecdsa(name, _) => name,
            Self::Ed25519(_) => "EdDSA",
            Self::Rsa(_) => "RS256",
        }
    }

    fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Ecdsa(_, pair) => Some(pair.sign(&random, text).ok()?.as_ref().to_vec()),
            Self::Ed25519(pair) => Some(pair.sign(text).as_ref().to_vec()),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let signed = pair.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature);
                signed.ok().map(|()| signature)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::encoding::{AsDer, EcPrivateKeyRfc5915Der, Pkcs8V1Der};
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        Ed25519KeyPair, RsaKeyPair,
    };
    use base64::Engine as _;
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
    use serde_json::Value;

    use super::sign;

    fn pem(label: &str, der: &[u8]) -> String {
        let text = BASE64_STANDARD.encode(der);
        format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
    }

    #[test]
    fn each_usual_kind_of_key_signs_with_its_algorithm() {
        let p256 = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let p384 = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap();
        let ed25519 = Ed25519KeyPair::generate().unwrap();
        let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let own = AsDer::<EcPrivateKeyRfc5915Der<'_>>::as_der(&p256.private_key()).unwrap();
        let rsa = AsDer::<Pkcs8V1Der<'_>>::as_der(&rsa).unwrap();
        for (key, algorithm) in [
            (pem("EC PRIVATE KEY", own.as_ref()), "ES256"),
            (
                pem("PRIVATE KEY", p256.to_pkcs8v1().unwrap().as_ref()),
                "ES256",
            ),
            (
                pem("PRIVATE KEY", p384.to_pkcs8v1().unwrap().as_ref()),
                "ES384",
            ),
            (
                pem("PRIVATE KEY", ed25519.to_pkcs8().unwrap().as_ref()),
                "EdDSA",
            ),
            (pem("PRIVATE KEY", rsa.as_ref()), "RS256"),
        ] {
            let assertion = sign(&key, "one", "shoal", "https://id").unwrap();
            let header = assertion.split('.').next().unwrap();
            let header = BASE64_URL_SAFE_NO_PAD.decode(header).unwrap();
            let header: Value = serde_json::from_slice(&header).unwrap();
            assert_eq!(header["alg"], algorithm);
            assert_eq!(header["kid"], "one");
        }
    }

    #[test]
    fn what_is_no_key_is_told_without_being_shown() {
        let told = sign("-----BEGIN SECRET-----", "", "shoal", "https://id").unwrap_err();
        assert!(told.contains("private_key_file"), "{told}");
        assert!(!told.contains("SECRET"), "{told}");
    }
}
