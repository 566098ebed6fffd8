use super::{Deed, Injector, ORDERLY_END};

impl Injector<'_> {
    pub(super) async fn roll(&mut self, turn: usize) -> anyhow::Result<Vec<Deed>> {
        let members = self.cluster.members();
        let member = &members[turn % members.len()];
        member.restart(ORDERLY_END).await?;
        Ok(vec![Deed::Restarted(member.name().to_owned())])
    }
}
