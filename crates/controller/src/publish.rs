//! Writes the ConfigMap and the Secret. Both must exist, and only the controller may write them.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use kube::{Api, Client};
use shoal_ports::kubernetes::KubernetesSettings;

use crate::render::Texts;

pub(crate) struct Publisher {
    config_maps: Api<ConfigMap>,
    secrets: Api<Secret>,
    config_map: String,
    secret: String,
}

impl Publisher {
    pub(crate) fn new(client: &Client, config: &KubernetesSettings) -> Self {
        Self {
            config_maps: Api::default_namespaced(client.clone()),
            secrets: Api::default_namespaced(client.clone()),
            config_map: config.config_map.clone(),
            secret: config.secret.clone(),
        }
    }

    /// Writes the texts to the ConfigMap and the Secret. Returns whether either had another text before.
    ///
    /// # Errors
    ///
    /// Fails if the ConfigMap or the Secret cannot be read or written, or if another client changed it meanwhile.
    pub(crate) async fn publish(&self, texts: &Texts) -> Result<bool, String> {
        // Write the ConfigMap first, because edges and session nodes need a new pool's prefix before workers, which
        // read the Secret, offer its tools.
        let nodes = self.publish_config_map(texts).await;
        let nodes = nodes.map_err(|error| told("configmap", &self.config_map, &error))?;
        let workers = self.publish_secret(texts).await;
        let workers = workers.map_err(|error| told("secret", &self.secret, &error))?;
        Ok(nodes || workers)
    }

    async fn publish_config_map(&self, texts: &Texts) -> Result<bool, kube::Error> {
        let mut found = self.config_maps.get(&self.config_map).await?;
        if found.data.as_ref() == Some(&texts.config_map) {
            return Ok(false);
        }
        found.data = Some(texts.config_map.clone());
        let params = PostParams::default();
        (self.config_maps.replace(&self.config_map, &params, &found)).await?;
        Ok(true)
    }

    async fn publish_secret(&self, texts: &Texts) -> Result<bool, kube::Error> {
        let mut found = self.secrets.get(&self.secret).await?;
        let data = texts.secret.iter();
        let data = data.map(|(name, text)| (name.clone(), ByteString(text.expose().into())));
        let data = Some(data.collect());
        if found.data == data {
            return Ok(false);
        }
        found.data = data;
        let params = PostParams::default();
        self.secrets.replace(&self.secret, &params, &found).await?;
        Ok(true)
    }
}

fn told(kind: &str, name: &str, error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 404 => {
            format!("{kind}/{name} does not exist: create it without data; the chart does")
        }
        kube::Error::Api(status) if status.code == 403 => {
            let why = &status.message;
            format!(
                "{kind}/{name}: the API server does not let the controller get or update it ({why}). Grant both verbs; the chart does"
            )
        }
        error => format!("{kind}/{name}: {error}"),
    }
}
