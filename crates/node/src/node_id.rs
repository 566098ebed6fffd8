use shoal_ports::NodeId;

use crate::config::Settings;

/// Makes a unique id: the configured name and a random suffix.
pub fn node_id(settings: &Settings) -> NodeId {
    let random = uuid::Uuid::new_v4().simple().to_string();
    match &settings.node.name {
        Some(name) => NodeId::new(format!("{name}-{}", &random[..6])),
        None => NodeId::new(&random[..12]),
    }
}
