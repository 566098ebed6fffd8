use std::net::SocketAddr;

use anyhow::Context as _;

use super::Role;
use crate::admin::Admin;
use crate::process::Process;

#[derive(Debug)]
pub(super) struct Announced {
    pub(super) mcp: Option<reqwest::Url>,
    pub(super) cluster: Option<SocketAddr>,
    pub(super) admin: Admin,
}

impl Announced {
    pub(super) async fn by(process: &Process, role: Role) -> anyhow::Result<Self> {
        let mut mcp = None;
        if role.serves_clients() {
            let url = process.announced("shoal: serving MCP on ").await?;
            mcp = Some(url.parse().with_context(|| format!("{url:?} is no URL"))?);
        }
        let mut cluster = None;
        if role.has_cluster_listener() {
            let address = process.announced("shoal: cluster on ").await?;
            let parsed = address.parse();
            cluster = Some(parsed.with_context(|| format!("{address:?} is no address"))?);
        }
        let admin = Admin::at(&process.announced("shoal: admin on ").await?)?;
        Ok(Self {
            mcp,
            cluster,
            admin,
        })
    }
}
