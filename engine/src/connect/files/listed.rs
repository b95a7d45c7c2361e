//! A file as it was noted, and whether it still is.

use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::connect::ConnectError;

/// A file as it was when the job was planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Where it is.
    pub path: PathBuf,
    /// How long it was, in bytes.
    pub size_bytes: u64,
    identity: Identity,
}

/// What changes when a file is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size_bytes: u64,
    modified: Modified,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size_bytes: metadata.size(),
            modified: Modified {
                s: metadata.mtime(),
                ns: metadata.mtime_nsec(),
            },
        }
    }
}

/// When a file was last written, since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Modified {
    s: i64,
    ns: i64,
}

/// What a checkpoint says of a file, so that it is known again where the job goes on. Device and
/// inode are not part of it: a folder may have moved to another disk meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileId {
    path: SavedPath,
    size_bytes: u64,
    modified: Modified,
}

/// A path as it stands in state: as text, where it is text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum SavedPath {
    Text(String),
    Bytes(Vec<u8>),
}

impl FileId {
    /// The path of the file, from the root.
    pub(crate) fn path(&self) -> PathBuf {
        match &self.path {
            SavedPath::Text(text) => PathBuf::from(text),
            SavedPath::Bytes(bytes) => PathBuf::from(OsStr::from_bytes(bytes)),
        }
    }

    /// A number that other files hardly have.
    pub(crate) fn fingerprint(&self) -> u64 {
        let path = fingerprint(self.path().as_os_str().as_bytes());
        let numbers = [
            self.size_bytes,
            self.modified.s.cast_unsigned(),
            self.modified.ns.cast_unsigned(),
        ];
        numbers
            .iter()
            .fold(path, |hash, number| fold_bytes(hash, &number.to_le_bytes()))
    }
}

/// A number that is the same for equal bytes, wherever it is computed.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    fold_bytes(FNV_START, bytes)
}

fn fold_bytes(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME)
    })
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

impl ListedFile {
    /// Notes what `path` is now.
    ///
    /// # Errors
    /// [`ConnectError::File`] when it cannot be read, or is not a regular file.
    pub fn note(path: PathBuf) -> Result<Self, ConnectError> {
        let file = open_regular(&path)?;
        let metadata = file
            .metadata()
            .map_err(|error| ConnectError::file(&path, error))?;
        let identity = Identity::of(&metadata);
        Ok(Self {
            path,
            size_bytes: identity.size_bytes,
            identity,
        })
    }

    /// When it was last written.
    pub(crate) const fn modified(&self) -> Modified {
        self.identity.modified
    }

    /// What a checkpoint says of it.
    pub(crate) fn id(&self) -> FileId {
        // Fails for an empty path only, which names no file.
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        FileId {
            path: match path.into_os_string().into_string() {
                Ok(text) => SavedPath::Text(text),
                Err(bytes) => SavedPath::Bytes(bytes.as_bytes().to_vec()),
            },
            size_bytes: self.size_bytes,
            modified: self.identity.modified,
        }
    }

    /// Opens the file for reading.
    ///
    /// # Errors
    /// [`ConnectError::File`] when it cannot be opened, or is not what was noted: an input
    /// must stay as it is from the start of a job to its end.
    pub fn open(&self) -> Result<File, ConnectError> {
        let file = open_regular(&self.path)?;
        self.check(&file)?;
        Ok(file)
    }

    /// Makes sure that the open `file` is still what was noted.
    ///
    /// # Errors
    /// As for [`ListedFile::open`].
    pub fn check(&self, file: &File) -> Result<(), ConnectError> {
        let now = file
            .metadata()
            .map_err(|error| ConnectError::file(&self.path, error))?;
        self.compare(&now)
    }

    /// Makes sure that there is still the file that was noted.
    ///
    /// # Errors
    /// [`ConnectError::File`] when it is gone, or another one is in its place.
    pub fn check_place(&self) -> Result<(), ConnectError> {
        let now = std::fs::metadata(&self.path).map_err(|error| {
            let reason = format_args!(
                "the file was removed while it was read ({error}): start the job again, and \
                 leave its input alone while it runs"
            );
            ConnectError::file(&self.path, reason)
        })?;
        self.compare(&now)
    }

    /// Whether `metadata` is of the same file, whatever its name and whatever it holds now.
    pub(crate) fn is_same_file(&self, metadata: &Metadata) -> bool {
        let other = Identity::of(metadata);
        (self.identity.device, self.identity.inode) == (other.device, other.inode)
    }

    fn compare(&self, now: &Metadata) -> Result<(), ConnectError> {
        let now = Identity::of(now);
        if now == self.identity {
            return Ok(());
        }
        let (was, is) = (self.identity.size_bytes, now.size_bytes);
        Err(ConnectError::file(
            &self.path,
            format_args!(
                "the file has changed since the job was planned ({was} bytes then, {is} now): \
                 start the job again, and leave its input alone while it runs"
            ),
        ))
    }
}

/// Opens without waiting (a pipe that nobody writes would wait for ever), and refuses what is
/// not a regular file: it could be neither read twice nor compared with what was planned.
pub(crate) fn open_regular(path: &Path) -> Result<File, ConnectError> {
    let no_wait = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(no_wait)
        .open(path)
        .map_err(|error| ConnectError::file(path, format_args!("cannot be opened: {error}")))?;
    let metadata = file
        .metadata()
        .map_err(|error| ConnectError::file(path, error))?;
    if metadata.is_file() {
        return Ok(file);
    }
    Err(ConnectError::file(
        path,
        "is not a regular file; pipes and devices cannot be read as a file source",
    ))
}
