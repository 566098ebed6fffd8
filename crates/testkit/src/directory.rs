//! A directory for one run: logs, data, configuration. Removed at the end, unless somebody must look at it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::Context as _;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory under the system's temporary one. Clones name the same; the last one removes it.
#[derive(Clone, Debug)]
pub struct Directory(Arc<Owned>);

#[derive(Debug)]
struct Owned {
    path: PathBuf,
    kept: AtomicBool,
}

impl Directory {
    /// A new, empty one; `purpose` is part of its name.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(purpose: &str) -> anyhow::Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("shoal-{purpose}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // What a killed run of the same number left behind.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        let kept = AtomicBool::new(false);
        Ok(Self(Arc::new(Owned { path, kept })))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// A file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path.join(name)
    }

    /// Leaves it where it is, for whoever wants to know what happened.
    pub fn keep(&self) -> &Path {
        self.0.kept.store(true, Ordering::Relaxed);
        &self.0.path
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !*self.kept.get_mut() {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
