use std::time::Duration;

use anyhow::bail;

use super::{Deed, Injector, bring_back};
use crate::cluster::{Member, Tools};

const ORDERLY_END: Duration = Duration::from_secs(40);

impl Injector<'_> {
    pub(super) async fn take_room_away(&mut self) -> anyhow::Result<Vec<Deed>> {
        let worker = self.one_of(&self.cluster.workers())?;
        for (name, value) in Tools::LITTLE_ROOM {
            worker.set(name, value);
        }
        restart(worker).await?;
        self.wait_about(self.options.lease).await;
        let refused = worker
            .admin()
            .metric("shoal_worker_refused_total", "")
            .await?;
        for (name, _) in Tools::LITTLE_ROOM {
            worker.unset(name);
        }
        restart(worker).await?;
        Ok(vec![Deed::LittleRoom(
            worker.name().to_owned(),
            refused as u64,
        )])
    }
}

async fn restart(worker: &Member) -> anyhow::Result<()> {
    let status = worker.terminate(ORDERLY_END).await?;
    if !status.success() {
        bail!(
            "{} ended with {status} when it was asked to end",
            worker.name()
        );
    }
    bring_back(worker).await
}
