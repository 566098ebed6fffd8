use kube::core::{ApiResource, GroupVersionKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of object that can be a server.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A Service with the label `shoal.dev/server: "true"`.
    Service,
    /// `MCPServer` of the Kubernetes SIG's mcp-lifecycle-operator.
    McpLifecycleOperator,
    /// `MCPServer` of Stacklok's ToolHive.
    Toolhive,
}

impl Kind {
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

    pub(crate) const fn kubernetes_kind(self) -> &'static str {
        match self {
            Self::Service => "Service",
            Self::McpLifecycleOperator | Self::Toolhive => "MCPServer",
        }
    }

    /// Returns the versions of the kind's resource, in the order in which to try them.
    pub(crate) fn resources(self) -> Vec<ApiResource> {
        const OPERATORS: &[&str] = &["v1beta1", "v1alpha1"];
        let (group, versions, plural): (_, &[&str], _) = match self {
            Self::Service => ("", &["v1"], "services"),
            Self::McpLifecycleOperator => ("mcp.x-k8s.io", OPERATORS, "mcpservers"),
            Self::Toolhive => ("toolhive.stacklok.dev", OPERATORS, "mcpservers"),
        };
        let resource = |version: &&str| {
            let kind = GroupVersionKind::gvk(group, version, self.kubernetes_kind());
            ApiResource::from_gvk_with_plural(&kind, plural)
        };
        versions.iter().map(resource).collect()
    }
}
