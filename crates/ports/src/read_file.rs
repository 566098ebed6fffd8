//! Reads files that an operator configures, up to a limit, because a path may lead to an endless
//! device. Only [`read_text_or_pipe`] waits for a pipe's writer.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

/// Reads a regular file, following links. Blocks, but does not wait for a writer.
///
/// # Errors
/// The operating system's error; [`InvalidInput`](io::ErrorKind::InvalidInput) if the file is not
/// regular; [`FileTooLarge`](io::ErrorKind::FileTooLarge) above `most` bytes. Errors omit the
/// file's name.
pub fn read_file(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    whole(open_file(file)?, most)
}

/// Reads a regular text file.
///
/// # Errors
/// As for [`read_file`]; [`InvalidData`](io::ErrorKind::InvalidData) if it is not UTF-8.
pub fn read_text(file: &Path, most: u64) -> io::Result<String> {
    text(read_file(file, most)?)
}

/// Reads text from any file or a pipe. Waits for the pipe's writer.
///
/// # Errors
/// As for [`read_text`].
pub fn read_text_or_pipe(file: &Path, most: u64) -> io::Result<String> {
    text(whole(File::open(file)?, most)?)
}

pub(crate) fn open_file(file: &Path) -> io::Result<File> {
    // Opening a pipe can lose its data; the check is repeated afterwards, because the path may have
    // changed.
    expect_regular(&std::fs::metadata(file)?)?;
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nix::libc::O_NONBLOCK);
    let opened = options.open(file)?;
    expect_regular(&opened.metadata()?)?;
    Ok(opened)
}

fn expect_regular(about: &Metadata) -> io::Result<()> {
    match about.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        )),
    }
}

fn whole(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut read)?;
    match read.len() as u64 > most {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes"),
        )),
        false => Ok(read),
    }
}

fn text(read: Vec<u8>) -> io::Result<String> {
    String::from_utf8(read)
        // The original error contains bytes that may be secret.
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::path::{Path, PathBuf};

    use super::{read_file, read_text, read_text_or_pipe};

    struct Directory(PathBuf);

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn directory() -> Directory {
        let path = std::env::temp_dir().join(format!("shoal-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&path).unwrap();
        Directory(path)
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let at = directory();
        let file = at.0.join("file");
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(read_file(&file, 5).unwrap(), b"12345");
        let longer = read_file(&file, 4).unwrap_err();
        assert_eq!(longer.kind(), ErrorKind::FileTooLarge);
        assert_eq!(longer.to_string(), "it has more than 4 bytes");
        std::fs::write(&file, b"\xff").unwrap();
        assert_eq!(
            read_text(&file, 4).unwrap_err().kind(),
            ErrorKind::InvalidData
        );
        std::fs::remove_file(&file).unwrap();
        assert_eq!(read_file(&file, 5).unwrap_err().kind(), ErrorKind::NotFound);
    }

    fn is_refused(path: &Path) {
        let refused = read_file(path, 4).unwrap_err().to_string();
        assert_eq!(refused, "it is no regular file", "{}", path.display());
    }

    #[test]
    fn a_directory_is_no_file() {
        is_refused(&directory().0);
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_files_and_to_what_is_none() {
        use std::os::unix::fs::symlink;
        let at = directory();
        std::fs::create_dir(at.0.join("one")).unwrap();
        std::fs::write(at.0.join("one/file"), "text").unwrap();
        symlink("one", at.0.join("data")).unwrap();
        symlink("data/file", at.0.join("file")).unwrap();
        assert_eq!(read_text(&at.0.join("file"), 4).unwrap(), "text");
        symlink("/dev/zero", at.0.join("endless")).unwrap();
        is_refused(&at.0.join("endless"));
        let endless = read_text_or_pipe(&at.0.join("endless"), 4).unwrap_err();
        assert_eq!(endless.kind(), ErrorKind::FileTooLarge);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_waits_for_the_writer_of_a_pipe() {
        let at = directory();
        let pipe = at.0.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        is_refused(&pipe);
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "text")
        });
        assert_eq!(read_text_or_pipe(&pipe, 4).unwrap(), "text");
        writer.join().unwrap().unwrap();
    }
}
