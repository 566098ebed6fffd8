use std::time::Duration;

use super::{Deed, Injector, killed};
use crate::process::SOON;

const AWAY: Duration = Duration::from_millis(300);

impl Injector<'_> {
    pub(super) async fn stop_reading(&mut self, turn: usize) -> anyhow::Result<Vec<Deed>> {
        let member = self.one_in_turn(turn)?;
        member.kill().await?;
        self.wait_about(AWAY).await;
        member.start_again_unread().await?;
        member.wait_until_ready(SOON).await?;
        Ok(vec![killed(member), Deed::Unread(member.name().to_owned())])
    }
}
