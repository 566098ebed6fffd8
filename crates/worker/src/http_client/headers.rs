//! Headers of the operator, from the configuration or a file, and of clients.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue};
use shoal_ports::{Caller, Secret, read_text};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{HttpClientConfig, LOOK, off_the_runtime};

const FILE_BYTES: u64 = 64 * 1024;
const FORWARDED: usize = 16;
/// Headers that control a message's transport. Only Shoal sets them.
const OWN: [&str; 17] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "origin",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(super) struct Headers {
    fixed: HeaderMap,
    file: Option<PathBuf>,
    /// Locked while the file is read, so that all requests wait for its headers.
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    looked: Option<Instant>,
    changed: Option<SystemTime>,
    headers: HeaderMap,
    failed: Option<String>,
}

pub(super) fn check(headers: &BTreeMap<String, Secret>) -> Result<(), String> {
    let lines = headers.iter();
    parse(lines.map(|(name, value)| (name.as_str(), value.expose()))).map(drop)
}

pub(super) fn forwarded(names: &[String]) -> Result<Vec<Arc<str>>, String> {
    if names.len() > FORWARDED {
        return Err(format!("at most {FORWARDED} headers are passed on"));
    }
    let names = names.iter().map(|name| Ok(known(name)?.as_str().into()));
    names.collect()
}

pub(super) fn of_caller(caller: &Caller, names: &[Arc<str>]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in caller.headers.only(names).iter() {
        let parsed = (
            HeaderName::try_from(&**name),
            HeaderValue::from_maybe_shared(value.clone()),
        );
        if let (Ok(name), Ok(mut value)) = parsed {
            value.set_sensitive(true);
            headers.append(name, value);
        }
    }
    headers
}

impl Headers {
    pub(super) fn new(config: &HttpClientConfig) -> Result<Self, String> {
        let lines = config.headers.iter();
        Ok(Self {
            fixed: parse(lines.map(|(name, value)| (name.as_str(), value.expose())))?,
            file: config.headers_file.clone(),
            read: Mutex::default(),
        })
    }

    /// While the file cannot be read, its last headers stay.
    pub(super) async fn current(&self) -> HeaderMap {
        let mut headers = self.fixed.clone();
        let Some(file) = &self.file else {
            return headers;
        };
        let mut read = self.read.lock().await;
        let now = Instant::now();
        if read.looked.is_none_or(|looked| now >= looked + LOOK) {
            let failed = match load_if_other(file, read.changed).await {
                Ok(None) => None,
                Ok(Some((headers, changed))) => {
                    read.headers = headers;
                    read.changed = Some(changed);
                    None
                }
                Err(reason) => Some(reason),
            };
            if let Some(reason) = &failed
                && read.failed != failed
            {
                tracing::error!(target: "shoal::http", file = %file.display(), reason, "the headers cannot be read; the former ones stay");
            }
            read.failed = failed;
            // Set last, because a request that is cancelled earlier may not have read the file.
            read.looked = Some(now);
        }
        headers.extend(read.headers.clone());
        headers
    }
}

async fn load_if_other(
    file: &Path,
    known: Option<SystemTime>,
) -> Result<Option<(HeaderMap, SystemTime)>, String> {
    let file = file.to_owned();
    let load = move || {
        let changed = std::fs::metadata(&file)?.modified()?;
        if known == Some(changed) {
            return Ok(None);
        }
        Ok(Some((read_text(&file, FILE_BYTES)?, changed)))
    };
    let loaded: io::Result<_> = off_the_runtime(load).await;
    match loaded.map_err(|error| error.to_string())? {
        Some((text, changed)) => Ok(Some((read_lines(&text)?, changed))),
        None => Ok(None),
    }
}

fn read_lines(text: &str) -> Result<HeaderMap, String> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines: Option<Vec<_>> = lines.map(|line| line.split_once(':')).collect();
    let lines = lines.ok_or("a line is not of the form `Name: value`")?;
    parse(lines.into_iter())
}

/// Errors contain no values, which may be secrets.
fn parse<'a>(lines: impl Iterator<Item = (&'a str, &'a str)>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = name.trim();
        let parsed = known(name)?;
        let mut value = HeaderValue::from_str(value.trim())
            .map_err(|_| format!("the value of {name} has characters that no header can carry"))?;
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}

pub(crate) fn is_settable(name: &str) -> bool {
    known(name).is_ok()
}

fn known(name: &str) -> Result<HeaderName, String> {
    let parsed = HeaderName::try_from(name).map_err(|_| format!("{name:?} names no header"))?;
    if OWN.contains(&parsed.as_str()) || parsed.as_str().starts_with("mcp-") {
        return Err(format!("{name} is set by Shoal itself"));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shoal_ports::Secret;

    use super::{Headers, LOOK, check, forwarded};
    use crate::HttpConfig;

    #[test]
    fn what_shoal_says_itself_is_refused_and_values_are_not_quoted() {
        let wrong = |name: &str, value: &str| {
            check(&[(name.to_owned(), Secret::new(value))].into()).unwrap_err()
        };
        assert!(wrong("Mcp-Session-Id", "x").contains("by Shoal"));
        assert!(wrong("Content-Type", "x").contains("by Shoal"));
        assert!(wrong("a b", "x").contains("no header"));
        let told = wrong("authorization", "secret\nsecret");
        assert!(!told.contains("secret"), "{told}");
    }

    #[test]
    fn only_headers_that_clients_may_set_are_passed_on() {
        let of = |name: &str| forwarded(&[name.to_owned()]);
        assert_eq!(of("X-Team").unwrap(), [Arc::<str>::from("x-team")]);
        assert_eq!(
            of("Authorization").unwrap(),
            [Arc::<str>::from("authorization")]
        );
        for (name, why) in [
            ("Mcp-Session-Id", "by Shoal"),
            ("Host", "by Shoal"),
            ("a b", "no header"),
        ] {
            let told = of(name).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
        assert!(forwarded(&vec!["x-a".to_owned(); 17]).is_err());
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_pipe_in_the_files_place_holds_up_nobody() {
        let unique = uuid::Uuid::new_v4().simple().to_string();
        let file = std::env::temp_dir().join(format!("shoal-headers-{unique}"));
        std::fs::write(&file, "X-Team: a\n").unwrap();
        let mut config = HttpConfig::new("http://localhost/mcp");
        config.headers_file = Some(file.clone());
        let headers = Headers::new(&config.client()).unwrap();
        assert_eq!(headers.current().await["x-team"], "a");
        std::fs::remove_file(&file).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&file).status();
        assert!(made.unwrap().success());
        tokio::time::sleep(LOOK).await;
        assert_eq!(headers.current().await["x-team"], "a");
        let failed = headers.read.lock().await.failed.clone();
        assert_eq!(failed.as_deref(), Some("it is no regular file"));
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "X-Team: b\n").unwrap();
        tokio::time::sleep(LOOK).await;
        assert_eq!(headers.current().await["x-team"], "b");
        assert_eq!(headers.read.lock().await.failed, None);
        std::fs::remove_file(&file).unwrap();
    }

    #[tokio::test]
    async fn a_file_adds_headers() {
        let unique = uuid::Uuid::new_v4().simple().to_string();
        let file = std::env::temp_dir().join(format!("shoal-headers-{unique}"));
        std::fs::write(&file, "# ours\nAuthorization: Bearer a\n\nX-Team:  b\n").unwrap();
        let mut config = HttpConfig::new("http://localhost/mcp");
        config.headers.insert("X-Fixed".into(), Secret::new("c"));
        config.headers_file = Some(file.clone());
        let headers = Headers::new(&config.client()).unwrap();
        let now = headers.current().await;
        assert_eq!(now["authorization"], "Bearer a");
        assert_eq!(
            (&now["x-team"], &now["x-fixed"]),
            (&"b".parse().unwrap(), &"c".parse().unwrap())
        );
        std::fs::remove_file(&file).unwrap();
        assert_eq!(headers.current().await["authorization"], "Bearer a");
    }
}
