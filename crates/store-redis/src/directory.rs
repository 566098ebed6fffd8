use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use redis::Value;
use shoal_ports::{
    Claim, Directory, Epoch, Evidence, NewSession, NodeId, Placement, Principal, Renewal,
    SessionId, StoreError,
};

use crate::keys::field;
use crate::measure::measured;
use crate::millis::millis;
use crate::reply::{number, optional, parts, plain_step, unexpected};
use crate::store::{RedisStore, RedisStoreInner};

/// Maximum epochs queried concurrently.
const ASKED_TOGETHER: usize = 128;

/// Microseconds. Small, so that a later claim gets a greater epoch.
const CHANCE: u32 = 1 << 10;

#[async_trait]
impl Directory for RedisStore {
    /// Compares the stored lease with the remembered one, because the reply that reported a lapse may have been lost.
    async fn renew_lease(&self, node: &NodeId, lease: Duration) -> Result<Renewal, StoreError> {
        measured("directory.renew_lease", async {
            let key = self.inner.keys.lease(node);
            let life = millis(lease);
            let renewed = self
                .inner
                .run(&self.inner.scripts.renew_lease, &key, |command| {
                    command.arg(life);
                });
            let found = optional(renewed.await?)?.ok_or_else(unexpected)?;
            let before = self.inner.leases.lock().insert(node.clone(), found.clone());
            Ok(match before {
                Some(before) if before == found => Renewal::Kept,
                Some(before) if began(&before) == began(&found) => Renewal::Contested,
                _ => Renewal::Begun,
            })
        })
        .await
    }

    async fn end_lease(&self, node: &NodeId) -> Result<(), StoreError> {
        measured("directory.end_lease", async {
            let key = self.inner.keys.lease(node);
            let mut command = redis::cmd("UNLINK");
            command.arg(&key);
            self.inner.connections.ask(&key, command).await?;
            self.inner.leases.lock().remove(node);
            Ok(())
        })
        .await
    }

    /// Fails with `Held` if the session exists, unless an earlier attempt of the same owner created it.
    async fn create(&self, new: NewSession) -> Result<Epoch, StoreError> {
        measured("directory.create", async {
            let key = self.inner.keys.session(&new.session)?;
            let created = self.inner.run(&self.inner.scripts.create, &key, |command| {
                command
                    .arg(new.owner.as_str())
                    .arg(new.principal.as_str())
                    .arg(&*new.record)
                    .arg(millis(new.idle))
                    .arg(rand::random::<u32>());
            });
            plain_step(created.await?)?;
            Ok(Epoch(1))
        })
        .await
    }

    async fn lookup(&self, session: &SessionId) -> Result<Option<Placement>, StoreError> {
        measured("directory.lookup", async {
            let Ok(key) = self.inner.keys.session(session) else {
                return Ok(None);
            };
            let asked = [field::EPOCH, field::OWNER, field::PRINCIPAL];
            let mut found = parts(self.inner.fields(&key, &asked).await?)?;
            let Some(epoch) = found.optional()? else {
                return Ok(None);
            };
            let owner = found.optional()?;
            let owner = owner.as_ref().map(text).transpose()?.map(NodeId::new);
            let principal = Principal::new(text(&found.bytes()?)?);
            let lives = match &owner {
                Some(owner) => self.inner.lease_lives(owner).await?,
                None => false,
            };
            Ok(Some(Placement {
                principal,
                owner: owner.filter(|_| lives),
                epoch: Epoch(number(&epoch)?),
            }))
        })
        .await
    }

    async fn claim(&self, session: &SessionId, node: &NodeId) -> Result<Claim, StoreError> {
        measured("directory.claim", self.inner.claim(session, node, None)).await
    }

    async fn claim_on_evidence(
        &self,
        session: &SessionId,
        node: &NodeId,
        evidence: &Evidence,
    ) -> Result<Claim, StoreError> {
        measured(
            "directory.claim",
            self.inner.claim(session, node, Some(evidence)),
        )
        .await
    }

    async fn restore(
        &self,
        session: &SessionId,
        claim: Claim,
        owner: &NodeId,
        idle: Duration,
    ) -> Result<(), StoreError> {
        measured("directory.restore", async {
            let key = self.inner.keys.session(session)?;
            let restored = self
                .inner
                .run(&self.inner.scripts.restore_claim, &key, |command| {
                    command
                        .arg(claim.epoch.0)
                        .arg(owner.as_str())
                        .arg(&*claim.record)
                        .arg(millis(idle));
                });
            plain_step(restored.await?).map(drop)
        })
        .await
    }

    /// A claim that Redis lost counts as held until there is a newer claim.
    async fn held(&self, sessions: &[(SessionId, Epoch)]) -> Result<Vec<bool>, StoreError> {
        measured("directory.held", async {
            let asked = sessions
                .iter()
                .cloned()
                .map(|(session, epoch)| self.inner.is_held(session, epoch));
            stream::iter(asked)
                .buffered(ASKED_TOGETHER)
                .try_collect()
                .await
        })
        .await
    }

    async fn save(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        measured(
            "directory.save",
            self.inner.save(session, epoch, record, idle, false),
        )
        .await
    }

    async fn release(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        measured(
            "directory.release",
            self.inner.save(session, epoch, record, idle, true),
        )
        .await
    }

    /// Succeeds if the session is missing, because an earlier attempt removed it.
    async fn remove(&self, session: &SessionId, epoch: Epoch) -> Result<(), StoreError> {
        measured("directory.remove", async {
            let key = self.inner.keys.session(session)?;
            let removed = self.inner.run(&self.inner.scripts.remove, &key, |command| {
                command.arg(epoch.0);
            });
            plain_step(removed.await?).map(drop)
        })
        .await
    }

    async fn enlist(
        &self,
        node: &NodeId,
        sessions: &[(SessionId, Principal)],
        life: Duration,
    ) -> Result<(), StoreError> {
        let enlisted = self.inner.enlist(node, sessions, life);
        measured("directory.enlist", enlisted).await
    }

    async fn delist(&self, node: &NodeId, sessions: &[SessionId]) -> Result<(), StoreError> {
        measured("directory.delist", self.inner.delist(node, sessions)).await
    }

    async fn listing(&self) -> Result<Vec<NodeId>, StoreError> {
        measured("directory.listing", self.inner.listing()).await
    }

    async fn enlisted(
        &self,
        node: &NodeId,
        at_most: usize,
    ) -> Result<Vec<(SessionId, Principal)>, StoreError> {
        measured("directory.enlisted", self.inner.enlisted(node, at_most)).await
    }

    async fn forget_list(&self, node: &NodeId) -> Result<(), StoreError> {
        measured("directory.forget_list", self.inner.forget_list(node)).await
    }

    async fn sweep(&self) -> Result<usize, StoreError> {
        Ok(0)
    }
}

impl RedisStoreInner {
    async fn claim(
        &self,
        session: &SessionId,
        node: &NodeId,
        evidence: Option<&Evidence>,
    ) -> Result<Claim, StoreError> {
        let key = self.keys.session(session)?;
        let mut found = parts(self.fields(&key, &[field::EPOCH, field::OWNER]).await?)?;
        let epoch = found.optional()?.ok_or(StoreError::NotFound)?;
        let owner = found.optional()?.unwrap_or_default();
        // The former owner, and for how many milliseconds it must have owned the session by now.
        let (mut former, mut quiet) = (None, 0);
        if !owner.is_empty() && owner != node.as_str() {
            let owner = NodeId::new(text(&owner)?);
            match evidence.filter(|evidence| evidence.against == owner) {
                // The owner must learn of the claim in any case.
                Some(evidence) => {
                    let left = self.contest(&owner).await?;
                    if left.is_some_and(|left| !evidence.has_missed_a_renewal(left)) {
                        quiet = millis(evidence.lease);
                    }
                }
                None if self.lease_lives(&owner).await? => return Err(StoreError::Held),
                None => {}
            }
            former = Some(owner);
        }
        let claimed = self.run(&self.scripts.claim, &key, |command| {
            let chance = rand::random_range(1..=CHANCE);
            command
                .arg(node.as_str())
                .arg(&*owner)
                .arg(&*epoch)
                .arg(chance)
                .arg(quiet);
        });
        let mut claimed = plain_step(claimed.await?)?;
        // Contest the lease again, because it may have been renewed between check and claim.
        if let Some(owner) = former
            && let Err(error) = self.contest(&owner).await
        {
            // The former owner checks its sessions again one lease after a doubt, so a failure is harmless.
            tracing::debug!(%owner, %error, "cannot notify a former owner again");
        }
        Ok(Claim {
            epoch: Epoch(number(&claimed.bytes()?)?),
            record: claimed.bytes()?,
        })
    }

    /// Marks the node's lease as contested, which its next renewal reports, and returns the lease's remaining time.
    /// Called before a claim on evidence, and after every claim, because the lease may be renewed in between.
    async fn contest(&self, node: &NodeId) -> Result<Option<Duration>, StoreError> {
        let key = self.keys.lease(node);
        let contested = self.run(&self.scripts.contest_lease, &key, |_| {});
        let left = match contested.await? {
            Value::Int(left) => u64::try_from(left).unwrap_or(0),
            _ => 0,
        };
        Ok((left > 0).then(|| Duration::from_millis(left)))
    }

    async fn lease_lives(&self, node: &NodeId) -> Result<bool, StoreError> {
        let key = self.keys.lease(node);
        let mut command = redis::cmd("EXISTS");
        command.arg(&key);
        let found = self.connections.ask(&key, command).await?;
        Ok(found == Value::Int(1))
    }

    async fn is_held(&self, session: SessionId, epoch: Epoch) -> Result<bool, StoreError> {
        let Ok(key) = self.keys.session(&session) else {
            return Ok(false);
        };
        let mut command = redis::cmd("HGET");
        command.arg(&key).arg(field::EPOCH);
        let found = optional(self.connections.ask(&key, command).await?)?;
        let found = found.map(|found| number::<u64>(&found)).transpose()?;
        Ok(found.is_some_and(|newest| newest <= epoch.0))
    }

    async fn save(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
        release: bool,
    ) -> Result<(), StoreError> {
        let key = self.keys.session(session)?;
        let saved = self.run(&self.scripts.save, &key, |command| {
            command
                .arg(epoch.0)
                .arg(&*record)
                .arg(millis(idle))
                .arg(u8::from(release));
        });
        plain_step(saved.await?).map(drop)
    }
}

/// See `lua/contest_lease.lua`.
fn began(lease: &[u8]) -> Option<&[u8]> {
    lease.split(|byte| *byte == b':').next()
}

pub(crate) fn text(bytes: &Bytes) -> Result<&str, StoreError> {
    std::str::from_utf8(bytes).map_err(|_| unexpected())
}
