use std::time::Duration;

use super::{Deed, Injector};
use crate::redis::Data;

const AWAY: Duration = Duration::from_millis(700);

impl Injector<'_> {
    pub(super) async fn restart_redis(&mut self) -> anyhow::Result<Vec<Deed>> {
        self.kill_redis(Data::Kept).await?;
        Ok(vec![Deed::RedisRestarted])
    }

    pub(super) async fn wipe_redis(&mut self) -> anyhow::Result<Vec<Deed>> {
        self.kill_redis(Data::Lost).await?;
        Ok(vec![Deed::Wiped])
    }

    async fn kill_redis(&mut self, data: Data) -> anyhow::Result<()> {
        let redis = self.redis()?;
        redis.kill().await?;
        self.wait_about(AWAY).await;
        redis.start_again(data).await
    }
}
