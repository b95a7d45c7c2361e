//! The pieces in which files are read, and which subtask reads which.

use std::collections::HashSet;
use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::element::{EVENT_TIME_MIN, EventTime};

use super::ConnectError;

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
    modified_s: i64,
    modified_ns: i64,
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size_bytes: metadata.size(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
        }
    }
}

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

    /// When it was last written, in seconds and nanoseconds since the Unix epoch.
    pub(super) const fn modified(&self) -> (i64, i64) {
        (self.identity.modified_s, self.identity.modified_ns)
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
    pub(super) fn is_same_file(&self, metadata: &Metadata) -> bool {
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

/// A piece of input that is read in one go, by one subtask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Which of the source's files it is in, from 0.
    pub file: usize,
    /// What of the file.
    pub part: Part,
    /// No row of the split is earlier; what is known of it before it is read.
    pub event_time_min: EventTime,
}

impl Split {
    /// A whole file, of which nothing is known before it is read.
    pub const fn whole(file: usize) -> Self {
        Self {
            file,
            part: Part::Whole,
            event_time_min: EVENT_TIME_MIN,
        }
    }
}

/// What of a file a split is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// The row group of this number, from 0.
    RowGroup(usize),
}

/// The files that match `patterns`, each once: pattern by pattern, and by name within one.
/// Relative patterns begin at `base`.
///
/// # Errors
/// [`ConnectError::NoMatch`] for a pattern that matches nothing, [`ConnectError::Option`] for
/// one that cannot be understood, [`ConnectError::File`] for a file that cannot be read.
pub fn list_files(base: &Path, patterns: &[String]) -> Result<Vec<ListedFile>, ConnectError> {
    if patterns.is_empty() {
        return Err(ConnectError::option("path", "names no file"));
    }
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    for pattern in patterns {
        for path in matches_of(base, pattern)? {
            if seen.insert(path.clone()) {
                files.push(ListedFile::note(path)?);
            }
        }
    }
    Ok(files)
}

/// The splits that subtask `index` of `parallelism` reads, in their order: every
/// `parallelism`-th, so that all subtasks move through the input side by side and no
/// subtask's watermark is far behind.
pub fn assigned(splits: &[Split], index: u32, parallelism: u32) -> Vec<Split> {
    assert!(index < parallelism, "a subtask is one of its operator's");
    splits
        .iter()
        .skip(index as usize)
        .step_by(parallelism as usize)
        .cloned()
        .collect()
}

/// The files that match `pattern`, by name.
pub(super) fn matches_of(base: &Path, pattern: &str) -> Result<Vec<PathBuf>, ConnectError> {
    let plain = base.join(pattern);
    // A name with brackets in it is first of all a name.
    if plain.is_file() {
        return Ok(vec![plain]);
    }
    let full = full_pattern(base, pattern);
    let found = glob::glob(&full)
        .map_err(|error| ConnectError::option("path", format!("`{pattern}`: {error}")))?;
    let mut paths = Vec::new();
    for path in found {
        let path = path.map_err(|error| ConnectError::file(error.path(), error.error()))?;
        if !path.is_dir() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(ConnectError::NoMatch {
            pattern: plain.display().to_string(),
        });
    }
    paths.sort();
    Ok(paths)
}

/// `pattern` from `base` on. The base is a folder, not part of the pattern: its brackets mean
/// themselves.
pub(super) fn full_pattern(base: &Path, pattern: &str) -> String {
    let base = glob::Pattern::escape(&base.to_string_lossy());
    let full = Path::new(&base).join(pattern);
    full.to_string_lossy().into_owned()
}

/// Opens without waiting (a pipe that nobody writes would wait for ever), and refuses what is
/// not a regular file: it could be neither read twice nor compared with what was planned.
fn open_regular(path: &Path) -> Result<File, ConnectError> {
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
