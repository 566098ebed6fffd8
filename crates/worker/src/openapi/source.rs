use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Method, header};
use reqwest::Url;
use shoal_outbound::{Broken, collect};
use shoal_ports::read_file;

use super::document::PartLocation;
use crate::http_client::{
    HttpClient, RequestUnanswered, check_url, modified, off_the_runtime, send,
};

const WHAT: &str = "an OpenAPI document";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DocumentSource {
    File(PathBuf),
    Url(Url),
}

#[derive(Debug)]
pub(super) enum Unread {
    /// The source may come back by itself.
    Away(String),
    /// The operator must change the document or the settings.
    Wrong(String),
}

impl DocumentSource {
    pub(super) fn of(name: &str) -> Result<Self, String> {
        match name.contains("://") {
            true => Ok(Self::Url(check_url(name, WHAT)?)),
            false => Ok(Self::File(PathBuf::from(name))),
        }
    }

    pub(super) fn location(&self) -> PartLocation {
        match self {
            Self::File(file) => PartLocation::File(file.file_name().unwrap_or_default().into()),
            Self::Url(url) => PartLocation::Url(url.clone()),
        }
    }

    pub(super) fn file(&self, part: &PartLocation) -> Option<(PathBuf, Option<SystemTime>)> {
        let (Self::File(document), PartLocation::File(part)) = (self, part) else {
            return None;
        };
        let file = document.parent().unwrap_or(Path::new("")).join(part);
        let changed = modified(&file);
        Some((file, changed))
    }

    /// Reads the document. Sends headers only to the service's origin.
    pub(super) async fn read(
        &self,
        http: &HttpClient,
        within: Duration,
        base: Option<&Url>,
        limit: usize,
    ) -> Result<Bytes, Unread> {
        match self {
            Self::File(file) => of_file(file, limit).await,
            Self::Url(url) => {
                let own = base.is_none_or(|base| base.origin() == url.origin());
                in_time(fetch(http, url, own, limit), within).await
            }
        }
    }

    /// Reads a part of the document: at the document's origin like the document itself, at other
    /// origins with `others`, which sends no headers or certificates.
    pub(super) async fn read_part(
        &self,
        part: &PartLocation,
        http: &HttpClient,
        others: &HttpClient,
        within: Duration,
        base: Option<&Url>,
        limit: usize,
    ) -> Result<Bytes, Unread> {
        match (self, part) {
            (Self::File(document), PartLocation::File(part)) => {
                let directory = document.parent().unwrap_or(Path::new("")).to_owned();
                let part = part.clone();
                let beside = off_the_runtime(move || beside(&directory, &part)).await;
                let file = beside.map_err(|error| Unread::Wrong(error.to_string()))?;
                of_file(&file, limit).await
            }
            (Self::Url(document), PartLocation::Url(url)) if document.origin() == url.origin() => {
                let own = base.is_none_or(|base| base.origin() == url.origin());
                in_time(fetch(http, url, own, limit), within).await
            }
            (_, PartLocation::Url(url)) => {
                let read = in_time(fetch(others, url, false, limit), within).await;
                read.map_err(|(Unread::Away(why) | Unread::Wrong(why))| Unread::Wrong(why))
            }
            (Self::Url(_), PartLocation::File(_)) => Err(Unread::Wrong(
                "a document from a URL has no files".to_owned(),
            )),
        }
    }
}

async fn in_time(
    read: impl Future<Output = Result<Bytes, Unread>>,
    within: Duration,
) -> Result<Bytes, Unread> {
    let read = tokio::time::timeout(within, read).await;
    read.unwrap_or_else(|_| Err(Unread::Away("it did not come in time".to_owned())))
}

/// Follows links, which must stay below the directory.
fn beside(directory: &Path, part: &Path) -> io::Result<PathBuf> {
    let here = match directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => directory,
    };
    let here = here.canonicalize()?;
    let file = here.join(part).canonicalize()?;
    match file.starts_with(&here) {
        true => Ok(file),
        false => Err(io::Error::other(
            "it is not below the directory of the document",
        )),
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
        RequestUnanswered::NotSent(why) | RequestUnanswered::Lost(why) => Unread::Away(why),
        RequestUnanswered::NoToken(none) => Unread::Away(format!("{none:?}")),
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

pub(super) fn too_large(limit: usize) -> Unread {
    Unread::Wrong(format!(
        "it has more than {limit} bytes; raise document_bytes if it is to be used"
    ))
}
