//! The files are read again while the process runs.
//!
//! They are read whole and compared: Kubernetes swaps the directory that they are links into, other tools write
//! in place, and the bytes tell of both.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::TlsInner;
use super::error::TlsError;
use super::material::{Contents, Material};

/// Looks at the files `every` so often, until nobody holds what they are for.
pub(super) async fn renew(shared: Weak<TlsInner>, every: Duration) {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut said = None;
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let looked = spawn_blocking(move || shared.look());
        // A panic there says nothing of the next look.
        let Ok(looked) = looked.await else {
            continue;
        };
        match looked {
            Ok(None) => said = None,
            Ok(Some(renewed)) => {
                said = None;
                let until = renewed.validity.not_after;
                tracing::info!(not_after = until, "the cluster's certificate was renewed");
            }
            Err(error) => tell(error, &mut said),
        }
    }
}

/// Once for each trouble, and not with every look.
fn tell(error: TlsError, said: &mut Option<TlsError>) {
    if said.as_ref() == Some(&error) {
        return;
    }
    tracing::error!(
        %error,
        "the cluster's new certificate cannot be used; the former one stays until this is mended"
    );
    *said = Some(error);
}

impl TlsInner {
    /// Takes what is new and good.
    fn look(&self) -> Result<Option<Arc<Material>>, TlsError> {
        let contents = Contents::read(&self.files)?;
        if contents == self.current.read().contents {
            return Ok(None);
        }
        let material = Arc::new(Material::of(contents, &self.files, &self.name)?);
        *self.current.write() = Arc::clone(&material);
        Ok(Some(material))
    }
}
