//! Stores certificates in existing Secrets of Kubernetes. The pod's service account needs `get` and
//! `patch`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::CONTENT_TYPE;
use reqwest::{Certificate, Client, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::{Files, FoundCertificate};
use crate::cli;
use crate::exit::Failure;

const PATIENCE: Duration = Duration::from_secs(15);
/// Maximum bytes of an answer. A Secret has 1 MiB at most, which base64 makes longer.
const ANSWER_BYTES: usize = 4 << 20;

pub(super) struct Secrets {
    client: Client,
    url: String,
    token: String,
    prefix: String,
}

#[derive(Deserialize)]
struct KubeSecret {
    metadata: Metadata,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

impl Secrets {
    pub(super) fn of_pod(prefix: &str, command: &cli::Certificates) -> Result<Self, Failure> {
        let (Some(host), Some(port)) = (&command.api_host, command.api_port) else {
            let reason = "--secrets works only in a pod of Kubernetes, where KUBERNETES_SERVICE_HOST and \
                          KUBERNETES_SERVICE_PORT are set; name a directory instead";
            return Err(Failure::usage(reason));
        };
        let account = &command.service_account;
        let host = match host.contains(':') {
            true => format!("[{host}]"),
            false => host.clone(),
        };
        let namespace = text(&account.join("namespace"))?;
        Ok(Self {
            client: client(&account.join("ca.crt"))?,
            url: format!("https://{host}:{port}/api/v1/namespaces/{namespace}/secrets"),
            token: text(&account.join("token"))?,
            prefix: prefix.to_owned(),
        })
    }

    pub(super) fn name(&self, certificate: &str) -> String {
        format!("{}-{certificate}", self.prefix)
    }

    pub(super) async fn read(&self, certificate: &str) -> anyhow::Result<FoundCertificate> {
        let url = format!("{}/{}", self.url, self.name(certificate));
        let secret = self.send(certificate, self.client.get(url)).await?;
        let secret: KubeSecret =
            serde_json::from_slice(&secret).context("the answer is no Secret")?;
        let mut files = Files::new();
        for (name, content) in secret.data.unwrap_or_default() {
            let content = BASE64_STANDARD.decode(content);
            files.insert(name, content.context("the Secret holds no base64")?);
        }
        Ok(FoundCertificate {
            files,
            version: Some(secret.metadata.resource_version),
        })
    }

    /// Fails if the Secret has changed since it was read.
    pub(super) async fn write(
        &self,
        certificate: &str,
        before: &FoundCertificate,
        files: &Files,
    ) -> anyhow::Result<()> {
        let data: BTreeMap<&String, String> = files
            .iter()
            .map(|(name, content)| (name, BASE64_STANDARD.encode(content)))
            .collect();
        let change = json!({ "metadata": { "resourceVersion": before.version }, "data": data });
        let name = self.name(certificate);
        let url = format!("{}/{name}?fieldManager=shoal", self.url);
        let request = self
            .client
            .patch(url)
            .header(CONTENT_TYPE, "application/merge-patch+json")
            .body(serde_json::to_vec(&change)?);
        self.send(certificate, request).await.map(drop)
    }

    async fn send(&self, certificate: &str, request: RequestBuilder) -> anyhow::Result<Vec<u8>> {
        let name = self.name(certificate);
        let sent = request.bearer_auth(&self.token).send().await;
        let mut answer = sent.with_context(|| {
            format!(
                "cannot reach the API server at {}: a NetworkPolicy or proxy may be in the way",
                self.url
            )
        })?;
        let status = answer.status();
        let mut body = Vec::new();
        while let Some(part) = answer.chunk().await.context("the answer broke off")? {
            if body.len() + part.len() > ANSWER_BYTES {
                return Err(anyhow!(
                    "secret/{name}: the answer has more than {ANSWER_BYTES} bytes"
                ));
            }
            body.extend_from_slice(&part);
        }
        match status {
            StatusCode::OK => Ok(body),
            StatusCode::NOT_FOUND => Err(anyhow!(
                "secret/{name} does not exist: create it without data; the chart does"
            )),
            StatusCode::CONFLICT => Err(anyhow!(
                "secret/{name} was changed by somebody else meanwhile: run this again"
            )),
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Err(anyhow!(
                "secret/{name}: {status}: the service account needs the verbs get and patch for it"
            )),
            _ => Err(anyhow!("secret/{name}: the API server answers {status}")),
        }
    }
}

fn text(path: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(path);
    let text = text.with_context(|| {
        format!(
            "cannot read {}: the pod needs automountServiceAccountToken",
            path.display()
        )
    })?;
    Ok(text.trim().to_owned())
}

fn client(authority: &Path) -> anyhow::Result<Client> {
    let pem = text(authority)?;
    let authorities = Certificate::from_pem_bundle(pem.as_bytes());
    let authorities = authorities.with_context(|| format!("cannot use {}", authority.display()))?;
    let client = Client::builder()
        .timeout(PATIENCE)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tls_certs_only(authorities)
        .build();
    client.context("cannot make an HTTP client")
}
