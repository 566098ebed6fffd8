//! Members whose standard error nobody reads.

use std::time::Duration;

use super::{Deed, Injector, killed};
use crate::process::SOON;

/// For how long a killed member is away, about.
const AWAY: Duration = Duration::from_millis(300);

impl Injector<'_> {
    /// Kills a member of one role after the other, and starts it again with a log that goes to a full pipe. It stays so until
    /// it is killed again.
    pub(super) async fn stop_reading(&mut self, turn: usize) -> anyhow::Result<Vec<Deed>> {
        let member = self.one_in_turn(turn)?;
        member.kill().await?;
        self.wait_about(AWAY).await;
        member.start_again_unread().await?;
        member.wait_until_ready(SOON).await?;
        Ok(vec![killed(member), Deed::Unread(member.name().to_owned())])
    }
}
