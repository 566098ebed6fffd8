use std::time::Duration;

use async_trait::async_trait;
use shoal_ports::{CellRate, QuotaCells, QuotaKey, StoreError, Taken};

use crate::measure::measured;
use crate::reply::parts;
use crate::store::RedisStore;

#[async_trait]
impl QuotaCells for RedisStore {
    async fn take(
        &self,
        key: &QuotaKey,
        rate: CellRate,
        need: u32,
        want: u32,
    ) -> Result<Taken, StoreError> {
        measured("quota.take", async {
            let key = self.inner.keys.quota(key);
            let script = &self.inner.scripts.take_cells;
            let reply = self.inner.run(script, &key, |command| {
                command
                    .arg(rate.interval())
                    .arg(rate.burst())
                    .arg(need)
                    .arg(want.max(need));
            });
            let mut said = parts(reply.await?)?;
            let cells: u32 = said.number()?;
            let micros: u64 = said.number()?;
            Ok(match cells {
                0 => Taken::Later(Duration::from_micros(micros)),
                cells => Taken::Cells(cells),
            })
        })
        .await
    }

    async fn give_back(
        &self,
        key: &QuotaKey,
        rate: CellRate,
        cells: u32,
    ) -> Result<(), StoreError> {
        measured("quota.give_back", async {
            let key = self.inner.keys.quota(key);
            let script = &self.inner.scripts.give_cells_back;
            let given = self.inner.run(script, &key, |command| {
                command.arg(rate.interval()).arg(cells);
            });
            given.await.map(drop)
        })
        .await
    }
}
