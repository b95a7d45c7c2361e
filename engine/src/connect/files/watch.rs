//! Reads the files of folders as they come.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::connect::saved::Saved;
use crate::connect::side::reader::{Note, ReadJob, ReadOutput, Stop};
use crate::connect::side::source::Input;
use crate::connect::{ConnectError, ListedFile, Position, Split, SplitFormat};

use super::input::FileInput;
use super::list::names_of;
use super::listed::{FileId, fingerprint};
use super::planned::saved_value;

/// Reads files that match patterns, and goes on looking for more.
#[derive(Clone)]
pub(crate) struct WatchInput {
    format: Arc<dyn SplitFormat>,
    base: PathBuf,
    patterns: Vec<String>,
    /// From one look to the next.
    interval: Duration,
    index: u32,
    parallelism: u32,
    read: Read,
}

/// What was read of the files of one subtask.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Read {
    /// Files of which all was read, and which are still there.
    whole: Vec<FileId>,
    /// Files of which a part was read: one, or several where there were more subtasks before.
    parts: Vec<(FileId, Position)>,
}

impl WatchInput {
    /// An input of the files that come to where `files` are, which are watched.
    pub(super) fn new(format: Arc<dyn SplitFormat>, files: &FileInput) -> Self {
        Self {
            format,
            base: files.base.clone(),
            patterns: files.patterns.clone(),
            interval: files.watch.unwrap_or(Duration::from_secs(1)),
            index: 0,
            parallelism: 1,
            read: Read::default(),
        }
    }

    /// The files that have come since the last look, in the order in which they were last
    /// written. What has been read and is gone is forgotten, so that memory is bounded by what
    /// the folders hold; it is put into `left`.
    fn look(
        &self,
        seen: &mut Seen,
        left: &mut Vec<PathBuf>,
    ) -> Result<Vec<ListedFile>, ConnectError> {
        let mut still = Seen::with_capacity(seen.len());
        let mut come: Vec<ListedFile> = Vec::new();
        for path in self.paths()? {
            let listed = match ListedFile::note(path.clone()) {
                Ok(listed) => listed,
                // It went while it was looked at: nothing was promised of it yet, or all kept.
                Err(_) if matches!(path.try_exists(), Ok(false)) => continue,
                Err(error) => return Err(error),
            };
            match seen.remove(&path) {
                Some(read) if read.is_still(&listed) => {
                    still.insert(path, read);
                }
                Some(_) => return Err(changed(&path)),
                None => {
                    still.insert(path, SeenFile::Listed(listed.clone()));
                    come.push(listed);
                }
            }
        }
        left.extend(seen.drain().map(|(path, _)| path));
        *seen = still;
        come.sort_by(|a, b| (a.modified(), &a.path).cmp(&(b.modified(), &b.path)));
        Ok(come)
    }

    /// The files of this subtask, by their paths without links: whatever names lead to a file, it
    /// is one. What is found by a hidden name, or by one that ends with `.tmp`, is not complete.
    fn paths(&self) -> Result<BTreeSet<PathBuf>, ConnectError> {
        let mut paths = BTreeSet::new();
        for pattern in &self.patterns {
            for name in names_of(&self.base, pattern)? {
                if !is_complete(&name) {
                    continue;
                }
                match name.canonicalize() {
                    Ok(path) => paths.insert(path),
                    // It went, or leads to what has not come.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                    Err(error) => return Err(ConnectError::file(&name, error)),
                };
            }
        }
        paths.retain(|path| self.is_own(path));
        Ok(paths)
    }

    /// Every file is of one subtask, which all of them find by its path.
    fn is_own(&self, path: &Path) -> bool {
        // The high bits, for the low ones of this hash depend on few bytes.
        let hash = fingerprint(path.as_os_str().as_bytes()) >> 32;
        hash % u64::from(self.parallelism) == u64::from(self.index)
    }

    /// The files that were read before, as they were then.
    fn seen(&self) -> Seen {
        let parts = self.read.parts.iter().map(|(file, _)| file);
        let files = self.read.whole.iter().chain(parts);
        files
            .map(|file| (file.path(), SeenFile::Saved(file.clone())))
            .collect()
    }
}

/// The files that have been read, as they were, by path.
type Seen = HashMap<PathBuf, SeenFile>;

/// A file that was read.
enum SeenFile {
    /// Since the job started.
    Listed(ListedFile),
    /// Before a checkpoint from which it goes on.
    Saved(FileId),
}

impl SeenFile {
    fn is_still(&self, listed: &ListedFile) -> bool {
        match self {
            Self::Listed(read) => read == listed,
            Self::Saved(read) => *read == listed.id(),
        }
    }
}

impl Input for WatchInput {
    fn open(&mut self, index: u32, parallelism: u32) {
        (self.index, self.parallelism) = (index, parallelism);
    }

    fn restore(&mut self, saved: Vec<Saved<Value>>) -> Result<(), ConnectError> {
        let mut read = Read::default();
        for saved in saved {
            let saved: Saved<Read> = saved.read()?;
            read.whole.extend(saved.value.whole);
            read.parts.extend(saved.value.parts);
        }
        read.whole.retain(|file| self.is_own(&file.path()));
        read.parts.retain(|(file, _)| self.is_own(&file.path()));
        self.read = read;
        self.format.resume();
        Ok(())
    }

    fn splits(&self) -> Vec<Split> {
        // All files of a subtask are one stream.
        vec![Split::whole(0)]
    }

    fn job(&mut self) -> Option<Box<dyn ReadJob>> {
        Some(Box::new(WatchJob(self.clone())))
    }

    fn note(&mut self, note: Note) {
        let parts = &mut self.read.parts;
        match note {
            // Parts from before are read first, and in their order: the first is being read.
            Note::Came(listed) => parts.push((listed.id(), Position::Start)),
            Note::Reached(_, position) => {
                if let Some((_, read)) = parts.first_mut() {
                    *read = position;
                }
            }
            Note::Done(_) => {
                let (file, _) = parts.remove(0);
                self.read.whole.push(file);
            }
            Note::Left(path) => self.read.whole.retain(|file| file.path() != path),
        }
    }

    fn save(&self) -> Value {
        saved_value(&self.read)
    }
}

/// What the side thread does.
struct WatchJob(WatchInput);

impl WatchJob {
    fn read(
        &self,
        listed: &ListedFile,
        from: Position,
        out: &mut ReadOutput<'_>,
    ) -> Result<(), Stop> {
        // It may be removed as soon as its rows are seen.
        out.read_split(0, &*self.0.format, &Split::whole(0), from, listed)?;
        out.note(Note::Done(0))
    }
}

impl ReadJob for WatchJob {
    fn run(&mut self, out: &mut ReadOutput<'_>) -> Result<(), Stop> {
        let mut seen = self.0.seen();
        for (file, from) in &self.0.read.parts {
            let path = file.path();
            let listed = ListedFile::note(path.clone())?;
            if listed.id() != *file {
                return Err(changed(&path).into());
            }
            self.read(&listed, *from, out)?;
        }
        loop {
            let mut left = Vec::new();
            for listed in self.0.look(&mut seen, &mut left)? {
                out.note(Note::Came(Box::new(listed.clone())))?;
                self.read(&listed, Position::Start, out)?;
            }
            for path in left {
                out.note(Note::Left(path))?;
            }
            out.rest(self.0.interval)?;
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
