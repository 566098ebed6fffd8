use std::time::Duration;

use super::{Deed, Injector, killed};
use crate::clock::{self, SKEWS, WrongClock};

const AWAY: Duration = Duration::from_millis(300);

impl Injector<'_> {
    pub(super) async fn change_clock(&mut self, turn: usize) -> anyhow::Result<Vec<Deed>> {
        let clock = WrongClock::find()?;
        let member = self.one_in_turn(turn)?;
        let pid = member.pid();
        member.kill().await?;
        clock::clean_up_after(pid);
        self.wait_about(AWAY).await;
        let seconds = SKEWS[turn % SKEWS.len()];
        for (name, value) in clock.variables(seconds) {
            member.variable(name, &value);
        }
        member.bring_back().await?;
        let wrong = Deed::WrongClock(format!("{} by {seconds:+} s", member.name()));
        Ok(vec![killed(member), wrong])
    }
}
