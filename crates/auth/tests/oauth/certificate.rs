use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use shoal_auth::config::Dpop;
use shoal_ports::{
    AuthError, Authenticated, Authenticator as _, ClientCertificate, Credentials, Scheme,
    TokenFault,
};

use crate::setting::Setting;

async fn show(
    mode: Dpop,
    scheme: Scheme,
    own: &ClientCertificate,
    shown: Option<&ClientCertificate>,
) -> Result<Authenticated, AuthError> {
    let setting = Setting::with(|auth| auth.dpop = mode).await;
    let mut claims = setting.claims();
    claims["cnf"] = json!({ "x5t#S256": URL_SAFE_NO_PAD.encode(own.sha256()) });
    let token = setting.key.token(&claims);
    let shown = Credentials {
        token: Some((scheme, token.as_bytes())),
        certificate: shown,
        ..Credentials::none()
    };
    let first = setting.oauth.authenticate(shown).await;
    assert_eq!(setting.oauth.authenticate(shown).await, first);
    first
}

#[tokio::test]
async fn a_token_is_good_over_connections_with_its_certificate_alone() {
    let (own, other) = (
        ClientCertificate::of(b"own"),
        ClientCertificate::of(b"other"),
    );
    let elsewhere = Err(AuthError::Token(TokenFault::Certificate));
    for mode in [Dpop::Off, Dpop::Accepted] {
        let known = show(mode, Scheme::Bearer, &own, Some(&own)).await.unwrap();
        assert_eq!(known.principal.as_str(), "alice");
        assert_eq!(
            show(mode, Scheme::Bearer, &own, Some(&other)).await,
            elsewhere
        );
        assert_eq!(show(mode, Scheme::Bearer, &own, None).await, elsewhere);
        let proven = show(mode, Scheme::Dpop, &own, Some(&own)).await;
        assert_eq!(proven, Err(AuthError::Token(TokenFault::Unbound)));
    }
    let unbound = show(Dpop::Required, Scheme::Bearer, &own, Some(&own)).await;
    assert_eq!(unbound, Err(AuthError::Token(TokenFault::Unbound)));
}
