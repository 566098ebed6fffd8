//! Where the document is, and reading it from there.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use http::{Method, header};
use reqwest::Url;
use shoal_outbound::{Broken, collect};
use shoal_ports::read_file;

use super::config::OpenApiConfig;
use crate::http_client::{HttpClient, Unanswered, check_url, modified, off_the_runtime, send};

/// What the document's URL is called.
const WHAT: &str = "an OpenAPI document";

/// A file or a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DocumentSource {
    File(PathBuf),
    Url(Url),
}

/// Why the document cannot be read.
#[derive(Debug)]
pub(super) enum Unread {
    /// Whoever keeps it may be away for a while.
    Away(String),
    /// Somebody has to change something.
    Wrong(String),
}

impl DocumentSource {
    /// The one of this name.
    ///
    /// # Errors
    /// When it is a URL that cannot be used.
    pub(super) fn of(name: &str) -> Result<Self, String> {
        match name.contains("://") {
            true => Ok(Self::Url(check_url(name, WHAT)?)),
            false => Ok(Self::File(PathBuf::from(name))),
        }
    }

    /// When it was changed last, if that can be told without reading it.
    pub(super) fn changed(&self) -> Option<SystemTime> {
        match self {
            Self::File(file) => modified(file),
            Self::Url(_) => None,
        }
    }

    /// Its text. Headers and certificates go along only to the origin that they are meant for.
    pub(super) async fn read(
        &self,
        http: &HttpClient,
        config: &OpenApiConfig,
        base: Option<&Url>,
    ) -> Result<Bytes, Unread> {
        let limit = config.document_bytes;
        match self {
            Self::File(file) => of_file(file, limit).await,
            Self::Url(url) => {
                let own = base.is_none_or(|base| base.origin() == url.origin());
                let fetched = fetch(http, url, own, limit);
                let fetched = tokio::time::timeout(config.request_timeout.get(), fetched).await;
                fetched.unwrap_or_else(|_| Err(Unread::Away("it did not come in time".to_owned())))
            }
        }
    }
}

async fn of_file(file: &Path, limit: usize) -> Result<Bytes, Unread> {
    let most = u64::try_from(limit).unwrap_or(u64::MAX);
    let read = {
        let file = file.to_owned();
        off_the_runtime(move || read_file(&file, most)).await
    };
    read.map(Bytes::from).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => too_large(limit),
        _ => Unread::Wrong(format!("cannot read {}: {error}", file.display())),
    })
}

async fn fetch(
    http: &HttpClient,
    url: &Url,
    with_headers: bool,
    limit: usize,
) -> Result<Bytes, Unread> {
    let client = http.prepare().map_err(Unread::Wrong)?;
    let request = client.request(Method::GET, url);
    let mut request = request.map_err(Unread::Wrong)?;
    if with_headers {
        let headers = http.headers(&client, None).await;
        request = request.headers(headers.unwrap_or_default());
    }
    let accepted = "application/json, application/yaml, */*;q=0.5";
    let answer = send(request.header(header::ACCEPT, accepted)).await;
    let answer = answer.map_err(|unanswered| match unanswered {
        Unanswered::NotSent(why) | Unanswered::Lost(why) => Unread::Away(why),
        Unanswered::NoToken(none) => Unread::Away(format!("{none:?}")),
    })?;
    let status = answer.status();
    if status.is_server_error() {
        return Err(Unread::Away(format!("its server answered {status}")));
    }
    if !status.is_success() {
        return Err(Unread::Wrong(format!("its server answered {status}")));
    }
    let text = collect(answer, limit).await;
    text.map_err(|broken| match broken {
        Broken::TooLarge => too_large(limit),
        Broken::Connection(why) => Unread::Away(why),
    })
}

fn too_large(limit: usize) -> Unread {
    Unread::Wrong(format!(
        "it has more than {limit} bytes; raise document_bytes if it is to be used"
    ))
}
