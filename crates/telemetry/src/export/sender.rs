//! Sends exports, and retries as OTLP says (<https://opentelemetry.io/docs/specs/otlp/>, "Failures" and "Retryable
//! Response Codes").

use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use shoal_ports::Backoff;
use tokio::time::{Instant, sleep, timeout_at};

use super::attempt::{AttemptError, Retryable};
use super::export_stats::ExportStats;
use super::grpc::OtlpGrpc;
use super::http::OtlpHttp;
use crate::metrics::ExportOutcome;

const ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Sender {
    client: OtlpClient,
    timeout: Duration,
}

#[derive(Debug)]
pub(super) enum OtlpClient {
    Grpc(OtlpGrpc),
    Http(OtlpHttp),
}

#[derive(Debug)]
struct Failed {
    outcome: ExportOutcome,
    why: String,
}

#[derive(Debug)]
struct Rejected {
    count: u64,
    why: String,
}

impl Sender {
    pub(super) fn new(client: OtlpClient, timeout: Duration) -> Self {
        Self { client, timeout }
    }

    pub(super) async fn export(&self, stats: &ExportStats, request: Bytes, count: usize) {
        match self.send(request).await {
            Ok(rejected) => {
                stats.exported(count, ExportOutcome::Accepted, "");
                if let Some(rejected) = rejected {
                    stats.rejected(rejected.count, &rejected.why);
                }
            }
            Err(failed) => stats.exported(count, failed.outcome, &failed.why),
        }
    }

    /// The timeout covers all attempts.
    async fn send(&self, request: Bytes) -> Result<Option<Rejected>, Failed> {
        let deadline = Instant::now() + self.timeout;
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        for attempt in 1.. {
            let sent = timeout_at(deadline, self.attempt(request.clone())).await;
            let refused = match sent {
                Ok(Ok(answer)) => return Ok(rejected(&answer)),
                Ok(Err(refused)) => refused,
                Err(_) => {
                    return Err(Failed {
                        outcome: ExportOutcome::Timeout,
                        why: format!("no answer within {:?}", self.timeout),
                    });
                }
            };
            let pause = backoff.pause();
            let wait = match refused.again {
                Retryable::Soon => pause,
                Retryable::After(told) => told.saturating_add(pause),
                Retryable::Never => Duration::MAX,
            };
            let next = Instant::now().checked_add(wait);
            match next.filter(|next| *next < deadline && attempt < ATTEMPTS) {
                Some(next) => sleep(next - Instant::now()).await,
                None => {
                    return Err(Failed {
                        outcome: ExportOutcome::Failed,
                        why: refused.why,
                    });
                }
            }
        }
        unreachable!("the last attempt returns")
    }

    async fn attempt(&self, request: Bytes) -> Result<Bytes, AttemptError> {
        match &self.client {
            OtlpClient::Grpc(grpc) => grpc.send(request).await,
            OtlpClient::Http(http) => http.send(request).await,
        }
    }
}

/// Reads every answer as one for traces, because all signals encode rejections alike.
fn rejected(answer: &[u8]) -> Option<Rejected> {
    let partial = (ExportTraceServiceResponse::decode(answer).ok()?).partial_success?;
    let count = u64::try_from(partial.rejected_spans).unwrap_or(0);
    (count > 0 || !partial.error_message.is_empty()).then_some(Rejected {
        count,
        why: partial.error_message,
    })
}
