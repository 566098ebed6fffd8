use super::{Deed, Injector, ORDERLY_END};
use crate::cluster::Tools;

impl Injector<'_> {
    pub(super) async fn take_room_away(&mut self) -> anyhow::Result<Vec<Deed>> {
        let worker = self.one_of(&self.cluster.workers())?;
        for (name, value) in Tools::LITTLE_ROOM {
            worker.set(name, value);
        }
        worker.restart(ORDERLY_END).await?;
        self.wait_about(self.options.lease).await;
        let refused = worker
            .admin()
            .metric("shoal_worker_refused_total", "")
            .await?;
        for (name, _) in Tools::LITTLE_ROOM {
            worker.unset(name);
        }
        worker.restart(ORDERLY_END).await?;
        Ok(vec![Deed::LittleRoom(
            worker.name().to_owned(),
            refused as u64,
        )])
    }
}
