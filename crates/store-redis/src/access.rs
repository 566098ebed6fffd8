//! Logins and certificates for Redis, read again for each connection.

use std::path::Path;

use redis::{ClientTlsConfig, RedisConnectionInfo, TlsCertificates};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use shoal_ports::{Secret, SecretSource, read_file};

use crate::config::{RedisConfig, RedisSettings, RedisTls, Sentinel};
use crate::target::{RedisTarget, Topology};

const LONGEST: u64 = 1 << 20;

pub(crate) struct RedisCredentials {
    user: Option<String>,
    password: Option<SecretSource>,
    tls: RedisTls,
    sentinel: Sentinel,
}

pub(crate) struct RedisAccess {
    pub(crate) login: RedisConnectionInfo,
    pub(crate) at_sentinels: Option<RedisConnectionInfo>,
    pub(crate) certificates: Option<TlsCertificates>,
    pub(crate) sentinels_tls: bool,
}

impl RedisCredentials {
    /// Fails if settings conflict with the URL or each other.
    pub(crate) fn new(target: &RedisTarget, config: &RedisConfig) -> Result<Self, String> {
        let RedisSettings {
            user,
            password,
            tls,
            sentinel,
            ..
        } = config.redis.clone();
        if user.is_some() && target.user.is_some() {
            return Err("the URL names a user, and so does redis.user: remove one".to_owned());
        }
        if password.is_some() && target.password.is_some() {
            return Err("the URL has a password, and so has redis.password: remove one".to_owned());
        }
        if tls.certificate.is_some() != tls.key.is_some() {
            return Err("redis.tls.certificate and redis.tls.key go together".to_owned());
        }
        let by_sentinels = matches!(target.place, Topology::Sentinel { .. });
        let Sentinel {
            user: sentinel_user,
            password: sentinel_password,
            tls: sentinel_tls,
        } = &sentinel;
        if !by_sentinels
            && (sentinel_user.is_some() || sentinel_password.is_some() || sentinel_tls.is_some())
        {
            return Err("redis.sentinel needs a URL with redis+sentinel://".to_owned());
        }
        if sentinel_user.is_some() && sentinel_password.is_none() {
            return Err("redis.sentinel.user needs redis.sentinel.password".to_owned());
        }
        let has_files = tls.authority.is_some() || tls.certificate.is_some();
        if has_files && !target.tls && sentinel_tls != &Some(true) {
            return Err(
                "redis.tls needs a URL with TLS: rediss://, rediss+cluster:// or rediss+sentinel://"
                    .to_owned(),
            );
        }
        let user = target.user.clone().or(user);
        let in_url = target.password.clone().map(Secret::new);
        let password = in_url.map(SecretSource::Value).or(password);
        // Refuse a user without a password, because the Redis client library would log in as `default`.
        if user.is_some() && password.is_none() {
            let reason = "a user needs a password: set redis.password. Redis takes any password for a user with nopass";
            return Err(reason.to_owned());
        }
        Ok(Self {
            user,
            password,
            tls,
            sentinel,
        })
    }

    pub(crate) fn read(&self, target: &RedisTarget) -> Result<RedisAccess, String> {
        let sentinels_tls = self.sentinel.tls.unwrap_or(target.tls);
        let certificates = (target.tls || sentinels_tls).then(|| self.certificates());
        let at_sentinels = self
            .sentinel
            .password
            .as_ref()
            .map(|password| login(self.sentinel.user.as_deref(), Some(password)));
        let login = login(self.user.as_deref(), self.password.as_ref())?;
        Ok(RedisAccess {
            login: login.set_db(target.db),
            at_sentinels: at_sentinels.transpose()?,
            certificates: certificates.transpose()?,
            sentinels_tls,
        })
    }

    fn certificates(&self) -> Result<TlsCertificates, String> {
        let client_tls = match (&self.tls.certificate, &self.tls.key) {
            (Some(certificate), Some(key)) => Some(ClientTlsConfig {
                client_cert: read_certificates(certificate)?,
                client_key: read(key)?,
            }),
            _ => None,
        };
        let authority = self.tls.authority.as_deref();
        let root_cert = authority.map(read_certificates).transpose()?;
        Ok(TlsCertificates {
            client_tls,
            root_cert,
        })
    }
}

fn login(
    user: Option<&str>,
    password: Option<&SecretSource>,
) -> Result<RedisConnectionInfo, String> {
    let mut login = RedisConnectionInfo::default();
    if let Some(user) = user {
        login = login.set_username(user);
    }
    match password {
        Some(SecretSource::Value(password)) => login = login.set_password(password.expose()),
        Some(SecretSource::File(path)) => {
            let text = String::from_utf8(read(path)?);
            let text = text.map_err(|_| format!("{} is not UTF-8", path.display()))?;
            login = login.set_password(text.trim());
        }
        None => {}
    }
    Ok(login)
}

fn read_certificates(path: &Path) -> Result<Vec<u8>, String> {
    let text = read(path)?;
    let mut found = CertificateDer::pem_slice_iter(&text);
    match found.next() {
        Some(Ok(_)) => Ok(text),
        _ => Err(format!("{} has no certificate in PEM", path.display())),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let read = read_file(path, LONGEST);
    read.map_err(|error| format!("cannot read {}: {error}", path.display()))
}
