use shoal_ports::kubernetes::is_subdomain;
use shoal_telemetry::metrics::DiscoveryRefusal as Reason;
use url::Url;

use crate::name::pool_name;
use crate::object::{Object, Port, Service, What, cut};
use crate::target::Reach;

/// Maximum characters of a pool's prefix in the configuration.
pub(crate) const LONGEST_PREFIX: usize = 64;
/// Maximum characters of the path in a pool's URL.
pub(crate) const LONGEST_PATH: usize = 1024;
/// Maximum characters of a key in a Secret.
pub(crate) const LONGEST_KEY: usize = 253;

/// Maximum bytes of a refusal's message. The API server allows 1024 bytes in an Event.
const LONGEST_MESSAGE: usize = 1000;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) url: Url,
    pub(crate) prefix: String,
    /// The key of a Secret that contains the pool's token. The Secret is in the object's namespace.
    pub(crate) token: Option<SecretKey>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SecretKey {
    pub(crate) namespace: String,
    pub(crate) secret: String,
    pub(crate) key: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

#[derive(Debug)]
pub(crate) enum NoPool {
    /// The object is no server, or Kubernetes is deleting it.
    NoServer,
    Waiting,
    Refused(Refusal),
}

impl From<Refusal> for NoPool {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Refusal {
    pub(crate) fn of(reason: Reason, mut message: String) -> Self {
        message.truncate(cut(&message, LONGEST_MESSAGE).len());
        Self { reason, message }
    }

    pub(crate) fn target(message: String) -> Self {
        Self::of(Reason::TargetNotAllowed, message)
    }

    fn annotation(name: &str, wrong: impl std::fmt::Display) -> Self {
        Self::of(
            Reason::InvalidAnnotation,
            format!("shoal.dev/{name}: {wrong}"),
        )
    }
}

/// Translates an object into a pool.
///
/// # Errors
///
/// Returns why the object has no pool.
pub(crate) fn pool(object: &Object, reach: &Reach<'_>) -> Result<Pool, NoPool> {
    let wanted = object.server.as_deref();
    let url = match &object.what {
        _ if object.leaving => return Err(NoPool::NoServer),
        What::Service(service) if wanted == Some("true") => {
            service
                .reachable()
                .map_err(|why| Refusal::target(format!("the Service {} {why}", object.name)))?;
            of_service(object, service)?
        }
        What::Service(_) => return Err(NoPool::NoServer),
        What::Published(_) if wanted == Some("false") => return Err(NoPool::NoServer),
        What::Published(None) => return Err(NoPool::Waiting),
        What::Published(Some(url)) => url.clone(),
    };
    Ok(Pool {
        name: pool_name(&object.namespace, &object.name),
        url: reach.admit(&object.namespace, &url)?,
        prefix: prefix(object)?,
        token: token(object)?,
    })
}

fn of_service(object: &Object, service: &Service) -> Result<String, Refusal> {
    let path = match (object.annotation("transport"), object.annotation("path")) {
        (None | Some("streamable-http" | "sse"), Some(path)) => path,
        (None | Some("streamable-http"), None) => "/mcp",
        (Some("sse"), None) => "/sse",
        (Some(other), _) => {
            let wrong = format!("{other:?} is neither streamable-http nor sse");
            return Err(Refusal::annotation("transport", wrong));
        }
    };
    let clean = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '\\');
    if !path.starts_with('/') || !path.chars().all(clean) || path.len() > LONGEST_PATH {
        let wrong = format!(
            "a path begins with / and has at most {LONGEST_PATH} characters, without spaces, ? and #"
        );
        return Err(Refusal::annotation("path", wrong));
    }
    let port = port(object, service)?;
    let scheme = match port.app_protocol == "https" || port.name == "https" {
        true => "https",
        false => "http",
    };
    Ok(format!(
        "{scheme}://{}.{}.svc:{}{path}",
        object.name, object.namespace, port.number
    ))
}

/// Returns the port that the annotation `port` names. Without this annotation, returns the port `mcp`, the only TCP
/// port, or the port `http`.
fn port<'a>(object: &Object, service: &'a Service) -> Result<&'a Port, Refusal> {
    let tcp = |port: &&Port| matches!(port.protocol.as_str(), "" | "TCP");
    let mut ports = service.ports.iter().filter(tcp);
    if let Some(wanted) = object.annotation("port") {
        let is_it = |port: &&Port| port.name == wanted || port.number.to_string() == wanted;
        return ports.find(is_it).ok_or_else(|| {
            Refusal::annotation("port", format!("the Service has no TCP port {wanted:?}"))
        });
    }
    let ports: Vec<&Port> = ports.collect();
    let named = |name: &str| ports.iter().find(|port| port.name == name).copied();
    let only = || (ports.len() == 1).then(|| ports[0]);
    let meant = named("mcp").or_else(only).or_else(|| named("http"));
    meant.ok_or_else(|| {
        let wrong =
            "the Service has no TCP port called mcp or http, and not only one: name the port";
        Refusal::annotation("port", wrong)
    })
}

/// Returns the prefix of the pool's tools: from the annotation, or the object's name, so that tools of different
/// servers do not clash.
fn prefix(object: &Object) -> Result<String, Refusal> {
    let Some(prefix) = object.annotation("prefix") else {
        let mut prefix = object.name.replace(['.', '-'], "_");
        prefix.truncate(LONGEST_PREFIX - 1);
        return Ok(format!("{prefix}_"));
    };
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_./".contains(&b);
    match prefix.len() <= LONGEST_PREFIX && prefix.bytes().all(fits) {
        true => Ok(prefix.to_owned()),
        false => {
            let wrong = format!(
                "a prefix has at most {LONGEST_PREFIX} characters: letters, digits, - _ . and /"
            );
            Err(Refusal::annotation("prefix", wrong))
        }
    }
}

fn token(object: &Object) -> Result<Option<SecretKey>, Refusal> {
    let Some(named) = object.annotation("token-secret") else {
        return Ok(None);
    };
    // Check the name here, because kube puts it into a URL without escaping.
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    let is_key = |key: &str| (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(fits);
    let parts = named.split_once('/');
    let parts = parts.filter(|(secret, key)| is_subdomain(secret) && is_key(key));
    let Some((secret, key)) = parts else {
        let wrong = "name a Secret of this namespace and its key, as NAME/KEY";
        return Err(Refusal::annotation("token-secret", wrong));
    };
    Ok(Some(SecretKey {
        namespace: object.namespace.clone(),
        secret: secret.to_owned(),
        key: key.to_owned(),
    }))
}
