//! Reads the files of folders as they come.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::reader::{ReadJob, ReadOutput, Stop};
use super::split::matches_of;
use super::{ConnectError, ListedFile, Split, SplitFormat};

/// Reads files that match patterns, and goes on looking for more.
pub(super) struct WatchJob {
    pub(super) format: Arc<dyn SplitFormat>,
    pub(super) base: PathBuf,
    pub(super) patterns: Vec<String>,
    /// From one look to the next.
    pub(super) interval: Duration,
    pub(super) index: u32,
    pub(super) parallelism: u32,
}

/// The files that have been read, as they were, by path.
type Seen = HashMap<PathBuf, ListedFile>;

impl WatchJob {
    /// The files that have come since the last look, in the order in which they were last
    /// written. What has been read and is gone is forgotten, so that memory is bounded by what
    /// the folders hold.
    fn look(&self, seen: &mut Seen) -> Result<Vec<ListedFile>, ConnectError> {
        let mut still = Seen::with_capacity(seen.len());
        let mut come: Vec<ListedFile> = Vec::new();
        for path in self.paths()? {
            let listed = match ListedFile::note(path.clone()) {
                Ok(listed) => listed,
                // It went while it was looked at: nothing was promised of it yet, or all kept.
                Err(_) if !path.exists() => continue,
                Err(error) => return Err(error),
            };
            match seen.remove(&path) {
                Some(read) if read == listed => {
                    still.insert(path, listed);
                }
                Some(_) => return Err(changed(&path)),
                None if still.contains_key(&path) => {}
                None => {
                    still.insert(path, listed.clone());
                    come.push(listed);
                }
            }
        }
        *seen = still;
        come.sort_by(|a, b| (a.modified(), &a.path).cmp(&(b.modified(), &b.path)));
        Ok(come)
    }

    /// The files of this subtask. Hidden ones, and those that end with `.tmp`, are not complete.
    fn paths(&self) -> Result<Vec<PathBuf>, ConnectError> {
        let mut paths = Vec::new();
        for pattern in &self.patterns {
            match matches_of(&self.base, pattern) {
                Ok(found) => paths.extend(found),
                Err(ConnectError::NoMatch { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        paths.retain(|path| is_complete(path) && self.is_own(path));
        Ok(paths)
    }

    /// Every file is of one subtask, which all of them find by its path.
    fn is_own(&self, path: &Path) -> bool {
        let hash = path
            .as_os_str()
            .as_bytes()
            .iter()
            .fold(FNV_START, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME)
            });
        // The high bits, for the low ones of this hash depend on few bytes.
        (hash >> 32) % u64::from(self.parallelism) == u64::from(self.index)
    }
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

impl ReadJob for WatchJob {
    fn run(&mut self, out: &mut ReadOutput<'_>) -> Result<(), Stop> {
        let mut seen = Seen::new();
        loop {
            for listed in self.look(&mut seen)? {
                // It may be removed as soon as its rows are seen.
                out.read_split(0, &*self.format, &Split::whole(0), &listed)?;
            }
            out.rest(self.interval)?;
        }
    }
}

fn is_complete(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    !name.starts_with(b".") && !name.ends_with(b".tmp")
}

fn changed(path: &Path) -> ConnectError {
    let reason = "the file has changed since it was read: give new rows a file of their own, and \
                  let it appear complete, by renaming it";
    ConnectError::file(path, reason)
}
