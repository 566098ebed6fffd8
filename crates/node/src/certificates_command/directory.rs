//! Certificates in directories of one directory.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{Files, Found};

/// For the user who made them: they let their holder join.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

pub(super) struct Directory(PathBuf);

impl Directory {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub(super) fn path(&self, certificate: &str) -> PathBuf {
        self.0.join(certificate)
    }

    /// The files of a certificate; none if there is no such directory.
    pub(super) fn read(&self, certificate: &str) -> anyhow::Result<Found> {
        let path = self.path(certificate);
        let files = match files(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Files::new(),
            files => files.with_context(|| format!("cannot read {}", path.display()))?,
        };
        Ok(Found {
            files,
            version: None,
        })
    }

    pub(super) fn write(&self, certificate: &str, files: &Files) -> anyhow::Result<()> {
        let path = self.path(certificate);
        write(&path, files).with_context(|| {
            let above = self.0.display();
            format!(
                "cannot write {}: {above} must exist and be writable for this user",
                path.display()
            )
        })
    }
}

fn files(directory: &Path) -> io::Result<Files> {
    let mut files = Files::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if let Some(name) = entry.file_name().to_str().map(str::to_owned) {
            files.insert(name, fs::read(entry.path())?);
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
    for (name, content) in files {
        // Each is complete or not there.
        let beside = directory.join(format!(".{name}.{}", std::process::id()));
        let written = create(&beside)
            .and_then(|mut file| file.write_all(content))
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
