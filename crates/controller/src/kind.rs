//! The kinds of objects that can be servers.

use kube::core::{ApiResource, GroupVersionKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of object that can be a server.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A Service with the label.
    Service,
    /// `MCPServer` of the Kubernetes SIG's mcp-lifecycle-operator.
    McpLifecycleOperator,
    /// `MCPServer` of Stacklok's ToolHive.
    Toolhive,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Service, Self::McpLifecycleOperator, Self::Toolhive];

    /// Its name in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::McpLifecycleOperator => "mcp-lifecycle-operator",
            Self::Toolhive => "toolhive",
        }
    }

    /// Its resources, the version to try first at the front.
    pub(crate) fn resources(self) -> Vec<ApiResource> {
        let (group, versions, kind, plural): (_, &[&str], _, _) = match self {
            Self::Service => ("", &["v1"], "Service", "services"),
            Self::McpLifecycleOperator => (
                "mcp.x-k8s.io",
                &["v1beta1", "v1alpha1"],
                "MCPServer",
                "mcpservers",
            ),
            Self::Toolhive => (
                "toolhive.stacklok.dev",
                &["v1beta1", "v1alpha1"],
                "MCPServer",
                "mcpservers",
            ),
        };
        let resource = |version: &&str| {
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
        };
        versions.iter().map(resource).collect()
    }
}
