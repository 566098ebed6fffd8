use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use futures::StreamExt as _;
use reqwest::Url;

use super::config::OpenApiConfig;
use super::document::{self, Document, PartLocation, Parts};
use super::source::{DocumentSource, Unread, too_large};
use crate::http_client::HttpClient;

const AT_ONCE: usize = 8;

pub(super) struct LoadedDocument {
    pub(super) document: Document,
    pub(super) files: Vec<ReadFile>,
}

/// A file and its time of change, taken before the read, so that a change during the read is seen
/// later.
pub(super) type ReadFile = (PathBuf, Option<SystemTime>);

pub(super) struct Loader<'a> {
    pub(super) source: &'a DocumentSource,
    pub(super) config: &'a OpenApiConfig,
    pub(super) http: &'a HttpClient,
    pub(super) others: &'a HttpClient,
    pub(super) base: Option<&'a Url>,
}

impl Loader<'_> {
    /// A missing part leaves the document incomplete. `document_bytes` limits all parts together.
    pub(super) async fn load(&self) -> Result<LoadedDocument, Unread> {
        let location = self.source.location();
        let mut files: Vec<ReadFile> = self.source.file(&location).into_iter().collect();
        let most = self.config.document_bytes;
        let within = self.config.request_timeout.get();
        let text = self.source.read(self.http, within, self.base, most);
        let text = text.await?;
        let left = AtomicUsize::new(most.saturating_sub(text.len()));
        let begun = apart(move || Ok(Parts::new(document::read(&text)?, location)));
        let mut parts = begun.await?;
        loop {
            let wanted = parts.take_wanted();
            if wanted.is_empty() {
                break;
            }
            files.extend(wanted.iter().filter_map(|part| self.source.file(part)));
            let mut reading = futures::stream::iter(wanted)
                .map(|part| self.part(part, &left))
                .buffered(AT_ONCE);
            let mut texts: Vec<(PartLocation, Result<Bytes, String>)> = Vec::new();
            while let Some((part, text)) = reading.next().await {
                let text = match text {
                    Ok(text) => {
                        let rest = left.load(Ordering::Relaxed).checked_sub(text.len());
                        left.store(rest.ok_or_else(|| too_large(most))?, Ordering::Relaxed);
                        Ok(text)
                    }
                    Err(Unread::Away(why)) => return Err(Unread::Away(format!("{part}: {why}"))),
                    Err(Unread::Wrong(why)) => {
                        tracing::warn!(target: "shoal::openapi", %part, why, "a part of the document cannot be read");
                        Err(why)
                    }
                };
                texts.push((part, text));
            }
            drop(reading);
            let added = apart(move || {
                for (part, text) in texts {
                    let read = text.and_then(|text| document::read(&text));
                    parts.add(&part, read);
                }
                Ok(parts)
            });
            parts = added.await?;
        }
        let document = apart(move || Document::of(parts)).await?;
        Ok(LoadedDocument { document, files })
    }

    async fn part(
        &self,
        part: PartLocation,
        left: &AtomicUsize,
    ) -> (PartLocation, Result<Bytes, Unread>) {
        let limit = left.load(Ordering::Relaxed);
        let within = self.config.request_timeout.get();
        let read = self
            .source
            .read_part(&part, self.http, self.others, within, self.base, limit);
        let read = read.await;
        (part, read)
    }
}

/// Runs `work` on a blocking thread, because a large document takes seconds.
pub(super) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, Unread> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(Unread::Wrong),
        Err(_) => Err(Unread::Wrong("its reading panicked".to_owned())),
    }
}
