use std::time::Duration;

use anyhow::bail;

use super::{Deed, Injector, bring_back};

pub(super) const ORDERLY_END: Duration = Duration::from_secs(40);

impl Injector<'_> {
    pub(super) async fn roll(&mut self, turn: usize) -> anyhow::Result<Vec<Deed>> {
        let members = self.cluster.members();
        let member = &members[turn % members.len()];
        let status = member.terminate(ORDERLY_END).await?;
        if !status.success() {
            bail!(
                "{} ended with {status} when it was asked to end",
                member.name()
            );
        }
        bring_back(member).await?;
        Ok(vec![Deed::Restarted(member.name().to_owned())])
    }
}
