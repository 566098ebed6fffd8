//! The file of the audit trail. If it is moved away, the writer opens a new one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use super::time::now;
use crate::lines::{LineOutput, LineSink};
use crate::metrics::{AuditSink, metrics};

const LOOK: Duration = Duration::from_secs(1);

/// How long the writer gathers events, because one write for each event would cost more than serving a call.
const GATHER: Duration = Duration::from_millis(50);

/// Opens the file, readable only by its owner and group.
pub(super) fn open(path: &Path, queue_bytes: usize) -> io::Result<LineSink> {
    let named = |error: io::Error| {
        let text = format!("cannot write to audit.file {}: {error}", path.display());
        io::Error::new(error.kind(), text)
    };
    let file = append_to(path).map_err(named)?;
    let output = AuditFile {
        path: path.to_owned(),
        file: Some(file),
        looked: Instant::now(),
        has_failed: false,
        lost: 0,
        is_torn: is_torn(path),
    };
    LineSink::start("audit", output, queue_bytes, GATHER)
}

fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
    options.open(path)
}

fn is_torn(path: &Path) -> bool {
    // Opening a pipe would make this process its reader.
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let last = || {
        let mut last = [0];
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last).map(|()| last[0])
    };
    is_file && last().is_ok_and(|last: u8| last != b'\n')
}

struct AuditFile {
    path: PathBuf,
    file: Option<File>,
    looked: Instant,
    /// After a failed write, the writer opens the file anew, because it may have been replaced.
    has_failed: bool,
    lost: u64,
    is_torn: bool,
}

impl AuditFile {
    fn look(&mut self) {
        let is_due = self.has_failed || self.looked.elapsed() >= LOOK;
        if self.file.is_some() && !is_due {
            return;
        }
        self.looked = Instant::now();
        self.has_failed = false;
        if !self
            .file
            .as_ref()
            .is_some_and(|file| is_at(file, &self.path))
        {
            self.file = append_to(&self.path).ok();
            self.is_torn = is_torn(&self.path);
        }
    }

    /// Writes the report of lost events before the lines. Returns how many bytes of the lines were written.
    fn try_write(&mut self, lines: &[u8]) -> (usize, io::Result<()>) {
        let Some(file) = &mut self.file else {
            return (0, Err(io::ErrorKind::NotFound.into()));
        };
        let mut head = Vec::new();
        if self.is_torn {
            head.push(b'\n');
        }
        if self.lost > 0 {
            let told = json!({ "time": now(), "event.name": "shoal.audit.lost", "shoal.events": self.lost });
            head.extend_from_slice(told.to_string().as_bytes());
            head.push(b'\n');
        }
        let (written, result) = write_out(file, &head);
        self.is_torn = match written {
            0 => self.is_torn,
            _ => head[written - 1] != b'\n',
        };
        if result.is_err() {
            return (0, result);
        }
        self.lost = 0;
        let (written, result) = write_out(file, lines);
        self.is_torn = written > 0 && lines[written - 1] != b'\n';
        (written, result)
    }
}

fn write_out(file: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

fn count_of(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

impl LineOutput for AuditFile {
    fn write(&mut self, lines: &[u8]) {
        self.look();
        let (written, result) = self.try_write(lines);
        if let Err(error) = result {
            let count = count_of(&lines[written..]);
            self.lost += count;
            self.has_failed = true;
            metrics().audit.lost(AuditSink::File, count);
            tracing::error!(path = %self.path.display(), %error, count, "events of the audit trail are lost");
        }
    }

    fn dropped(&mut self, count: u64) {
        self.lost += count;
        self.write(&[]);
        tracing::error!(
            count,
            "events of the audit trail are lost: writing to the file is too slow"
        );
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (Ok(open), Ok(named)) = (file.metadata(), path.metadata()) else {
        return false;
    };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;
    use std::{fs, io};

    use super::{AuditFile, LOOK, LineOutput as _, append_to, count_of, is_torn, write_out};

    #[test]
    fn a_file_that_was_moved_away_is_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let (path, moved) = (directory.path().join("a"), directory.path().join("a.1"));
        let mut file = AuditFile {
            path: path.clone(),
            file: Some(append_to(&path).unwrap()),
            looked: Instant::now(),
            has_failed: false,
            lost: 0,
            is_torn: false,
        };
        file.write(b"1\n");
        fs::rename(&path, &moved).unwrap();
        file.looked = Instant::now().checked_sub(LOOK).unwrap();
        file.write(b"2\n");
        file.dropped(3);
        file.write(b"3\n");
        assert_eq!(fs::read_to_string(&moved).unwrap(), "1\n");
        let said = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!((lines[0], lines[2]), ("2", "3"));
        let lost: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
        assert_eq!(lost["shoal.events"], 3);
    }

    struct Full(Vec<u8>, usize);

    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = bytes.len().min(self.1 - self.0.len());
            if room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(&bytes[..room]);
            Ok(room)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_disk_took_is_counted_by_whole_lines() {
        let mut full = Full(Vec::new(), 5);
        let (written, result) = write_out(&mut full, b"1\n2\n3\n");
        assert!(result.is_err());
        assert_eq!((written, count_of(&full.0)), (5, 2));
    }

    #[test]
    fn a_line_after_a_torn_one_begins_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "1\n2").unwrap();
        let mut file = AuditFile {
            path: path.clone(),
            file: Some(append_to(&path).unwrap()),
            looked: Instant::now(),
            has_failed: true,
            lost: 1,
            is_torn: is_torn(&path),
        };
        file.write(b"3\n");
        file.write(b"4\n");
        let said = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!((lines[1], &lines[3..]), ("2", &["3", "4"][..]));
        let lost: serde_json::Value = serde_json::from_str(lines[2]).unwrap();
        assert_eq!(lost["shoal.events"], 1);
        assert!(!is_torn(&path) && !is_torn(directory.path()));
        fs::write(&path, "").unwrap();
        assert!(!is_torn(&path));
    }

    #[test]
    fn what_cannot_be_written_is_told_once_it_can() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gone").join("a");
        let mut file = AuditFile {
            path: path.clone(),
            file: None,
            looked: Instant::now(),
            has_failed: false,
            lost: 0,
            is_torn: false,
        };
        file.write(b"1\n2\n");
        fs::create_dir(path.parent().unwrap()).unwrap();
        file.write(b"3\n");
        let said = fs::read_to_string(&path).unwrap();
        assert!(
            said.contains(r#""shoal.events":2"#) && said.ends_with("\n3\n"),
            "{said}"
        );
    }
}
