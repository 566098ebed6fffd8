//! Asking the issuer about a token (RFC 7662).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use shoal_ports::{AuthError, TokenDigest, TokenFault, read_text};
use shoal_telemetry::metrics::{AuthServerOutcome, AuthServerRequest, metrics};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::AWAY;
use super::claims::{ClaimRules, Told, Verified};
use super::http::{HttpAsker, NoAnswer};
use super::metadata::discover;
use crate::config::Introspection;

/// How long a refusal is believed, and where to ask.
const REFUSED_FOR: Duration = Duration::from_secs(10);
const PLACE_FOR: Duration = Duration::from_secs(15 * 60);
/// Tokens that are asked about at a time, and refusals that are remembered, at most.
const AT_A_TIME: usize = 64;
const REMEMBERED: usize = 4096;
/// Bytes of the file with the secret at most.
const LONGEST_SECRET: u64 = 64 << 10;

/// Asks an issuer about tokens.
pub(crate) struct Introspector {
    http: HttpAsker,
    issuer: String,
    asked: Introspection,
    rules: ClaimRules,
    place: tokio::sync::Mutex<Option<(String, Instant)>>,
    at_a_time: Semaphore,
    questions: Mutex<HashMap<TokenDigest, Arc<Question>>>,
}

/// What is being found out about a token. Whoever holds the lock asks; the others wait, and look again.
type Question = tokio::sync::Mutex<Option<(Result<Verified, TokenFault>, Instant)>>;

#[derive(Deserialize)]
struct Active {
    active: bool,
}

impl Introspector {
    pub(crate) fn new(
        http: HttpAsker,
        issuer: String,
        asked: Introspection,
        rules: ClaimRules,
    ) -> Self {
        Self {
            http,
            issuer,
            asked,
            rules,
            place: tokio::sync::Mutex::default(),
            at_a_time: Semaphore::new(AT_A_TIME),
            questions: Mutex::default(),
        }
    }

    /// What a token stands for. Dropping the future gives up; whoever else waits for the same then asks.
    pub(crate) async fn ask(
        &self,
        token: &str,
        digest: TokenDigest,
    ) -> Result<Verified, AuthError> {
        let question = self.question(digest);
        let mut known = question.lock().await;
        if let Some((answer, until)) = &*known
            && Instant::now() < *until
        {
            return answer.clone().map_err(AuthError::Token);
        }
        let _place = self.at_a_time.try_acquire().map_err(|_| AWAY)?;
        let asked = self.ask_server(token).await;
        let outcome = match &asked {
            Ok(_) => AuthServerOutcome::Answered,
            Err(_) => AuthServerOutcome::Failed,
        };
        let security = &metrics().security;
        security.asked_server(AuthServerRequest::Introspection, outcome);
        let text = asked.map_err(|why| {
            tracing::warn!(
                issuer = self.issuer,
                error = why,
                "cannot ask about a token"
            );
            AWAY
        })?;
        let answer = match serde_json::from_slice::<Active>(&text) {
            Ok(Active { active: true }) => self.rules.read(&text, Told::ByIssuer),
            Ok(_) => Err(TokenFault::Inactive),
            Err(_) => {
                tracing::warn!(
                    issuer = self.issuer,
                    "the answer about a token cannot be read"
                );
                return Err(AWAY);
            }
        };
        let until = match &answer {
            Ok(verified) => verified.until,
            Err(_) => Instant::now() + REFUSED_FOR,
        };
        *known = Some((answer.clone(), until));
        if answer.is_ok() {
            // Whoever waits has the question; from now on, those who come know the answer without it.
            self.questions.lock().remove(&digest);
        }
        answer.map_err(AuthError::Token)
    }

    fn question(&self, digest: TokenDigest) -> Arc<Question> {
        let mut questions = self.questions.lock();
        if questions.len() >= REMEMBERED && !questions.contains_key(&digest) {
            let now = Instant::now();
            // One that is being asked is held by whoever asks.
            let open = |question: &Question| {
                let known = question.try_lock();
                known.is_ok_and(|known| known.as_ref().is_some_and(|(_, until)| now < *until))
            };
            questions.retain(|_, question| Arc::strong_count(question) > 1 || open(question));
            if questions.len() >= REMEMBERED
                && let Some(any) = questions.keys().next().copied()
            {
                questions.remove(&any);
            }
        }
        questions.entry(digest).or_default().clone()
    }

    async fn ask_server(&self, token: &str) -> Result<bytes::Bytes, String> {
        let why = |none: NoAnswer| match none {
            NoAnswer::NotFound => "there is nothing at that URL".to_owned(),
            NoAnswer::Failed(why) => why,
        };
        let url = self
            .http
            .url(&self.place().await.map_err(why)?)
            .map_err(why)?;
        let secret = self.secret()?;
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let (client, secret) = (encoded(&self.asked.client_id), encoded(&secret));
        let form = Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        let asking = self.http.post(url, form, (&client, &secret));
        asking.await.map_err(why)
    }

    fn secret(&self) -> Result<String, String> {
        let file = self.asked.client_secret_file.clone();
        let file: PathBuf = file.unwrap_or_default();
        let secret = read_text(&file, LONGEST_SECRET);
        let secret = secret.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        Ok(secret.trim_end_matches(['\r', '\n']).to_owned())
    }

    async fn place(&self) -> Result<String, NoAnswer> {
        if let Some(place) = &self.asked.endpoint {
            return Ok(place.clone());
        }
        let mut place = self.place.lock().await;
        if let Some((known, until)) = &*place
            && Instant::now() < *until
        {
            return Ok(known.clone());
        }
        let found = discover(&self.http, &self.issuer).await?;
        let none = || NoAnswer::Failed("its metadata names no introspection endpoint".to_owned());
        let found = found.introspection_endpoint.ok_or_else(none)?;
        *place = Some((found.clone(), Instant::now() + PLACE_FOR));
        Ok(found)
    }
}
