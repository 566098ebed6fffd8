//! The files are read again while the process runs.
//!
//! They are read whole and compared: Kubernetes swaps the directory that they are links into, other tools write
//! in place, and the bytes tell of both.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::contents::Contents;
use super::error::TlsError;
use super::validity::Validity;

/// What files are read for.
pub(super) trait Source: Send + Sync + 'static {
    type Made: Send + Sync + 'static;

    /// Whose certificate it is, for the log: goes on after "a new certificate of".
    fn whose(&self) -> &str;
    /// Reads the files.
    ///
    /// # Errors
    /// Which one cannot be read.
    fn read(&self) -> Result<Contents, TlsError>;
    /// Makes something of them.
    ///
    /// # Errors
    /// Which one cannot be used, and why.
    fn make(&self, contents: &Contents) -> Result<Self::Made, TlsError>;
    /// When the certificate is valid.
    fn validity(made: &Self::Made) -> Validity;
}

/// What was made of files when they were last good.
pub(super) struct Renewed<S: Source> {
    pub(super) source: S,
    current: RwLock<Current<S::Made>>,
}

struct Current<M> {
    contents: Contents,
    made: Arc<M>,
}

impl<S: Source> Renewed<S> {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// What is wrong with which.
    pub(super) fn open(source: S) -> Result<Arc<Self>, TlsError> {
        let contents = source.read()?;
        let made = Arc::new(source.make(&contents)?);
        Ok(Arc::new(Self {
            source,
            current: RwLock::new(Current { contents, made }),
        }))
    }

    pub(super) fn current(&self) -> Arc<S::Made> {
        Arc::clone(&self.current.read().made)
    }

    /// Takes what is new and good.
    fn look(&self) -> Result<Option<Arc<S::Made>>, TlsError> {
        let contents = self.source.read()?;
        if contents == self.current.read().contents {
            return Ok(None);
        }
        let made = Arc::new(self.source.make(&contents)?);
        *self.current.write() = Current {
            contents,
            made: Arc::clone(&made),
        };
        Ok(Some(made))
    }
}

/// Looks at the files `every` so often, until nobody holds what they are for.
pub(super) async fn renew<S: Source>(shared: Weak<Renewed<S>>, every: Duration) {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut said = None;
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let looking = Arc::clone(&shared);
        let looked = spawn_blocking(move || looking.look());
        // A panic there says nothing of the next look.
        let Ok(looked) = looked.await else {
            continue;
        };
        let of = shared.source.whose();
        match looked {
            Ok(None) => said = None,
            Ok(Some(made)) => {
                said = None;
                let until = S::validity(&made).not_after;
                tracing::info!(of, not_after = until, "a certificate was renewed");
            }
            Err(error) => tell(of, error, &mut said),
        }
    }
}

/// Once for each trouble, and not with every look.
fn tell(of: &str, error: TlsError, said: &mut Option<TlsError>) {
    if said.as_ref() == Some(&error) {
        return;
    }
    tracing::error!(
        of,
        %error,
        "a new certificate cannot be used; the former one stays until this is mended"
    );
    *said = Some(error);
}
