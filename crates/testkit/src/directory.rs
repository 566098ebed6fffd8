//! A directory for one run, which is removed at the end unless it is kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use nix::sys::statvfs::statvfs;
use tempfile::TempDir;

const MEMORY: &str = "/dev/shm";

/// With less free space in `/dev/shm`, data goes to the disk. A long run writes some hundred MiB.
const ROOM_BYTES: u64 = 1 << 30;

/// A temporary directory. The last clone removes it.
#[derive(Clone, Debug)]
pub struct Directory(Arc<Owned>);

#[derive(Debug)]
struct Owned {
    path: PathBuf,
    memory: Option<PathBuf>,
    kept: AtomicBool,
}

impl Directory {
    /// Creates an empty directory with `purpose` in its name.
    pub fn create(purpose: &str) -> anyhow::Result<Self> {
        let prefix = format!("shoal-{purpose}-");
        let within = |parent: &Path| tempfile::Builder::new().prefix(&prefix).tempdir_in(parent);
        let memory = has_room_in_memory().then(|| within(Path::new(MEMORY)));
        let (path, memory) = (within(&std::env::temp_dir())?, memory.transpose()?);
        Ok(Self(Arc::new(Owned {
            path: path.keep(),
            memory: memory.map(TempDir::keep),
            kept: AtomicBool::new(false),
        })))
    }

    /// Uses a directory that stays.
    pub fn at(path: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(Arc::new(Owned {
            path: path.to_owned(),
            memory: None,
            kept: AtomicBool::new(true),
        })))
    }

    /// Creates a subdirectory for a server that syncs its writes, in memory if there is room, so that a busy disk
    /// does not slow the run.
    pub fn data(&self, name: &str) -> anyhow::Result<PathBuf> {
        let (path, memory) = (self.file(name), &self.0.memory);
        let data = memory
            .as_ref()
            .map_or(path.clone(), |memory| memory.join(name));
        let _ = std::fs::remove_dir_all(&data);
        std::fs::create_dir_all(&data)?;
        if data != path {
            std::os::unix::fs::symlink(&data, path)?;
        }
        Ok(data)
    }

    /// Returns the directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the path of a file in the directory.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path.join(name)
    }

    /// Keeps the directory for later analysis, and returns its path.
    pub fn keep(&self) -> &Path {
        self.0.kept.store(true, Ordering::Relaxed);
        &self.0.path
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !*self.kept.get_mut() {
            let _ = std::fs::remove_dir_all(&self.path);
            if let Some(memory) = &self.memory {
                let _ = std::fs::remove_dir_all(memory);
            }
        }
    }
}

fn has_room_in_memory() -> bool {
    let free = statvfs(MEMORY).map(|disk| disk.blocks_available() * disk.fragment_size());
    free.is_ok_and(|free| free >= ROOM_BYTES)
}
