//! A file that appears under its name only when it is complete.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::connect::ConnectError;

/// Names that are tried for the file while it is written, if others are taken.
const NAMES_MAX: u32 = 1000;

/// A file that is written under a hidden name in the same folder, and gets its own name when
/// all of it is on the disk. Dropped before, it is removed.
#[derive(Debug)]
pub(crate) struct PendingFile {
    file: File,
    hidden: PathBuf,
    target: PathBuf,
    written_bytes: u64,
    is_committed: bool,
}

impl PendingFile {
    /// Starts to write what is to be `target`. A file of that name stays until then.
    pub(crate) fn create(target: &Path) -> Result<Self, ConnectError> {
        require_folder(target)?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let process = std::process::id();
        for number in 0..NAMES_MAX {
            let hidden = target.with_file_name(format!(".{name}.{process}.{number}.tmp"));
            match OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&hidden)
            {
                Ok(file) => {
                    return Ok(Self {
                        file,
                        hidden,
                        target: target.to_owned(),
                        written_bytes: 0,
                        is_committed: false,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(cannot(&hidden, "be created", &error)),
            }
        }
        let reason = "too many unfinished files beside it: remove those that end with .tmp";
        Err(ConnectError::file(target, reason))
    }

    /// Bytes written so far.
    pub(crate) const fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Makes the file durable and gives it its name, in place of what had it before.
    pub(crate) fn commit(mut self) -> Result<(), ConnectError> {
        self.file
            .sync_all()
            .map_err(|error| cannot(&self.target, "be written", &error))?;
        std::fs::rename(&self.hidden, &self.target)
            .map_err(|error| cannot(&self.target, "be renamed to", &error))?;
        self.is_committed = true;
        // The name is durable once its folder is.
        let folder = folder_of(&self.target);
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| cannot(folder, "be synced", &error))
    }
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.written_bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if !self.is_committed {
            // What cannot be removed has a name that says what it is.
            let _ = std::fs::remove_file(&self.hidden);
        }
    }
}

/// Makes sure that the folder of `target` exists, and that `target` is not a folder itself.
pub(crate) fn require_folder(target: &Path) -> Result<(), ConnectError> {
    if target.file_name().is_none() || target.is_dir() {
        return Err(ConnectError::file(target, "does not name a file"));
    }
    let folder = folder_of(target);
    if folder.is_dir() {
        return Ok(());
    }
    Err(ConnectError::file(
        target,
        format_args!("there is no folder {}: create it first", folder.display()),
    ))
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn cannot(path: &Path, what: &str, error: &io::Error) -> ConnectError {
    ConnectError::file(path, format_args!("cannot {what}: {error}"))
}
