use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{CERTIFICATE, Files, FoundCertificate, ISSUED_BY, KEY};

/// Only the user may read the files, because anyone who has them may join the cluster.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

pub(super) struct Directory {
    path: PathBuf,
    /// Without the lock, two concurrent runs would each make an authority.
    _lock: fs::File,
}

impl Directory {
    /// Waits for a concurrent run to end.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let open = || -> io::Result<fs::File> {
            let directory = fs::File::open(path)?;
            directory.lock()?;
            Ok(directory)
        };
        let lock = open().with_context(|| {
            format!(
                "cannot use {}: it must exist, and be a directory",
                path.display()
            )
        })?;
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    pub(super) fn path(&self, certificate: &str) -> PathBuf {
        self.path.join(certificate)
    }

    pub(super) fn read(&self, certificate: &str) -> anyhow::Result<FoundCertificate> {
        let path = self.path(certificate);
        let files = files(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(FoundCertificate {
            files,
            version: None,
        })
    }

    pub(super) fn write(&self, certificate: &str, files: &Files) -> anyhow::Result<()> {
        let path = self.path(certificate);
        write(&path, files).with_context(|| {
            let above = self.path.display();
            format!(
                "cannot write {}: {above} must exist and be writable for this user",
                path.display()
            )
        })
    }
}

fn files(directory: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    for name in [CERTIFICATE, KEY, ISSUED_BY] {
        match fs::read(directory.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            content => {
                files.insert(name.to_owned(), content?);
            }
        }
    }
    Ok(files)
}

fn write(directory: &Path, files: &Files) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => {
            made?;
            fs::set_permissions(directory, Permissions::from_mode(DIRECTORY_MODE))?;
        }
    }
    // Write the key first. If this run is killed after the authority's key, the next run makes the certificate for this
    // key.
    for (name, content) in files.iter().rev() {
        // A rename is atomic. A killed run may leave the temporary file.
        let beside = directory.join(format!(".{name}.new"));
        let written = create(&beside)
            .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&beside, directory.join(name)));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written?;
    }
    Ok(())
}

fn create(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE);
    options.open(path)
}
