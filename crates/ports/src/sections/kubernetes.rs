//! `[discovery.kubernetes]`: what the controller watches and writes.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Period, settings};

/// Maximum pools that a node reads from the controller's file (`discovery.file`).
pub const MOST_POOLS: usize = 2000;

/// The setting that stands for every namespace.
pub const EVERY_NAMESPACE: &str = "*";

/// A kind of object that can be a server.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Kind")]
pub enum ServerKind {
    /// A Service with the label `shoal.dev/server: "true"`.
    Service,
    /// `MCPServer` of the Kubernetes SIG's mcp-lifecycle-operator.
    McpLifecycleOperator,
    /// `MCPServer` of Stacklok's ToolHive.
    Toolhive,
}

impl ServerKind {
    /// All kinds of objects.
    pub const ALL: [Self; 3] = [Self::Service, Self::McpLifecycleOperator, Self::Toolhive];

    /// Returns the kind's name in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::McpLifecycleOperator => "mcp-lifecycle-operator",
            Self::Toolhive => "toolhive",
        }
    }
}

settings! {
    /// `shoal controller`: which objects of a Kubernetes cluster become pools, and where these are written.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    #[schemars(rename = "Kubernetes")]
    pub struct KubernetesSettings {
        /// Namespaces that the controller watches; `["*"]` is all. The controller needs rights in each.
        pub namespaces: Vec<String> = Vec::new(),
        /// Kinds of [objects that become pools](kubernetes-servers.md#which-objects-are-servers).
        pub kinds: Vec<ServerKind> = ServerKind::ALL.to_vec(),
        /// DNS domain of the cluster.
        pub cluster_domain: String = "cluster.local".to_owned(),
        /// Lets objects name a [Secret with a token](kubernetes-servers.md#give-a-server-a-token).
        pub tokens: bool = false,
        /// How often the controller reads the tokens.
        pub tokens_every: Period = Period::seconds(60),
        /// Maximum pools; the oldest objects win.
        pub pools: usize = 100,
        /// Maximum pools of one namespace.
        pub pools_per_namespace: usize = 50,
        /// Existing ConfigMap for the pools, which edges and session nodes mount.
        pub config_map: String = "shoal-discovered".to_owned(),
        /// Existing Secret for the tokens, which workers mount.
        pub secret: String = "shoal-discovered".to_owned(),
        /// Directory where workers mount the Secret.
        pub directory: PathBuf = "/run/shoal/discovered".into(),
        /// Lease that the active controller holds.
        pub lease: String = "shoal-controller".to_owned(),
        /// How long a dead controller's Lease blocks other controllers, at least 1s.
        pub lease_duration: Period = Period::seconds(15),
        /// Pause before the controller looks for a missing kind again.
        pub retry: Period = Period::seconds(30),
    }
}

impl KubernetesSettings {
    /// Checks the settings that can be checked without a cluster.
    ///
    /// # Errors
    ///
    /// Returns the first wrong setting and the reason.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let every = self.namespaces.iter().any(|name| name == EVERY_NAMESPACE);
        if every && self.namespaces.len() > 1 {
            return Err(("namespaces", "\"*\" stands alone".to_owned()));
        }
        if let Some(name) = (self.namespaces.iter()).find(|name| !every && !is_label(name)) {
            return Err(("namespaces", format!("{name:?} is no name of a namespace")));
        }
        if self.kinds.is_empty() {
            return Err(("kinds", "must name at least one kind of object".to_owned()));
        }
        for (setting, period) in [("tokens_every", self.tokens_every), ("retry", self.retry)] {
            if period.get().is_zero() {
                return Err((setting, "must be longer than 0".to_owned()));
            }
        }
        if self.lease_duration.get() < Duration::from_secs(1) {
            return Err((
                "lease_duration",
                "must be at least 1s: a Lease counts in whole seconds".to_owned(),
            ));
        }
        for (setting, most) in [
            ("pools", self.pools),
            ("pools_per_namespace", self.pools_per_namespace),
        ] {
            if most == 0 {
                return Err((setting, "must be at least 1".to_owned()));
            }
        }
        if self.pools > MOST_POOLS {
            let wrong =
                format!("must be at most {MOST_POOLS}: nodes take no more from discovery.file");
            return Err(("pools", wrong));
        }
        Ok(())
    }
}

/// Whether the text is a DNS label as Kubernetes requires (RFC 1123).
fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

/// Whether the text is a DNS subdomain as Kubernetes requires (RFC 1123), as for the name of a Secret.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

fn is_part(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(fits) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::{KubernetesSettings, MOST_POOLS};
    use crate::Period;

    #[test]
    fn settings_that_cannot_work_are_named() {
        let usual = KubernetesSettings::default;
        let wrong = |config: KubernetesSettings| config.check().err().map(|(setting, _)| setting);
        assert_eq!(wrong(usual()), None);
        for (lease_duration, setting) in [
            (Period::millis(999), Some("lease_duration")),
            (Period::millis(1500), None),
        ] {
            let config = KubernetesSettings {
                lease_duration,
                ..usual()
            };
            assert_eq!(wrong(config), setting);
        }
        let none = KubernetesSettings {
            pools_per_namespace: 0,
            ..usual()
        };
        assert_eq!(wrong(none), Some("pools_per_namespace"));
        for (pools, setting) in [(MOST_POOLS, None), (MOST_POOLS + 1, Some("pools"))] {
            let many = KubernetesSettings { pools, ..usual() };
            assert_eq!(wrong(many), setting);
        }
        let no_kind = KubernetesSettings {
            kinds: Vec::new(),
            ..usual()
        };
        assert_eq!(wrong(no_kind), Some("kinds"));
        let mixed = KubernetesSettings {
            namespaces: vec!["*".to_owned(), "team-a".to_owned()],
            ..usual()
        };
        assert_eq!(wrong(mixed), Some("namespaces"));
    }
}
