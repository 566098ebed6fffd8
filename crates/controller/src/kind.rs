//! The resources of each kind of server at the API server.

use kube::core::{ApiResource, GroupVersionKind};
use shoal_ports::kubernetes::ServerKind;

pub(crate) const fn kubernetes_kind(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Service => "Service",
        ServerKind::McpLifecycleOperator | ServerKind::Toolhive => "MCPServer",
    }
}

/// Returns the versions of the kind's resource, in the order in which to try them.
pub(crate) fn resources(kind: ServerKind) -> Vec<ApiResource> {
    const OPERATORS: &[&str] = &["v1beta1", "v1alpha1"];
    let (group, versions, plural): (_, &[&str], _) = match kind {
        ServerKind::Service => ("", &["v1"], "services"),
        ServerKind::McpLifecycleOperator => ("mcp.x-k8s.io", OPERATORS, "mcpservers"),
        ServerKind::Toolhive => ("toolhive.stacklok.dev", OPERATORS, "mcpservers"),
    };
    let resource = |version: &&str| {
        let kind = GroupVersionKind::gvk(group, version, kubernetes_kind(kind));
        ApiResource::from_gvk_with_plural(&kind, plural)
    };
    versions.iter().map(resource).collect()
}
