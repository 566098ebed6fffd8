use super::{Deed, Injector};

impl Injector<'_> {
    pub(super) async fn fill_memory(&mut self) -> anyhow::Result<Vec<Deed>> {
        let redis = self.redis()?;
        redis.limit_memory(1).await?;
        self.wait_about(self.options.lease).await;
        redis.limit_memory(0).await?;
        Ok(vec![Deed::Full("memory".to_owned())])
    }

    pub(super) async fn fill_disk(&mut self) -> anyhow::Result<Vec<Deed>> {
        let redis = self.redis()?;
        redis.fill_disk().await?;
        self.wait_about(self.options.lease).await;
        redis.free_disk().await?;
        Ok(vec![Deed::Full("disk".to_owned())])
    }
}
