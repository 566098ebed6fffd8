//! Rereads certificate files and compares their contents, because Kubernetes swaps their directory
//! and other tools write in place.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::contents::Contents;
use super::error::TlsError;
use super::validity::Validity;

pub(super) trait CertificateSource: Send + Sync + 'static {
    type Made: Send + Sync + 'static;

    /// The words after "a new certificate of" in the log.
    fn whose(&self) -> &str;
    fn read(&self) -> Result<Contents, TlsError>;
    fn make(&self, contents: &Contents) -> Result<Self::Made, TlsError>;
    fn validity(made: &Self::Made) -> Validity;
}

pub(super) struct Renewed<S: CertificateSource> {
    pub(super) source: S,
    current: RwLock<Current<S::Made>>,
}

struct Current<M> {
    contents: Contents,
    made: Arc<M>,
}

impl<S: CertificateSource> Renewed<S> {
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

    /// Keeps the files' contents if they are new and valid.
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

pub(super) async fn renew<S: CertificateSource>(shared: Weak<Renewed<S>>, every: Duration) {
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

fn tell(of: &str, error: TlsError, said: &mut Option<TlsError>) {
    if said.as_ref() == Some(&error) {
        return;
    }
    tracing::error!(
        of,
        %error,
        "a new certificate cannot be used; the previous one stays in use until you fix this"
    );
    *said = Some(error);
}
