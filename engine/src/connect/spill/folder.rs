//! Folders for what is put aside while a job runs, which nothing outlives.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::OFlags;

use crate::connect::ConnectError;

/// What the name of a folder begins with. The number of its process comes behind.
const NAME: &str = "ringway-spill-";

/// What the name of a folder begins with until its lock is held.
const NEW_NAME: &str = ".ringway-spill-new-";

/// The file in a folder that its process holds locked for as long as it uses the folder.
const LOCK: &str = "lock";

/// How often a lock is opened that is replaced each time.
const LOCK_TRIES_MAX: u32 = 3;

/// Names that are tried, if others are taken.
const NAMES_MAX: u32 = 10_000;

/// The folders of this process that are there, and perhaps some that were.
static FOLDERS: Mutex<Vec<Weak<Place>>> = Mutex::new(Vec::new());

/// A folder of its own for what is put aside, with a name that says so. It is removed with all
/// that is in it when it is dropped, or before by [`SpillFolder::remove`].
///
/// A process that is killed leaves its folders behind. The lock in each goes with the process,
/// and whoever makes the next folder at the same place removes those that nobody holds.
#[derive(Debug)]
pub struct SpillFolder {
    place: Arc<Place>,
    /// Locked for as long as it is open.
    _lock: File,
}

/// Where a folder is.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Whether it was removed: nothing may be put there any more.
    is_removed: Mutex<bool>,
}

impl SpillFolder {
    /// Makes a folder in `parent`, or in the system's folder for such files, which only this
    /// user may enter. Folders there that were left behind are removed.
    ///
    /// # Errors
    /// [`ConnectError::File`] when it cannot be made: say another folder that can be written.
    pub fn create(parent: Option<&Path>) -> Result<Self, ConnectError> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        remove_left_behind(&parent);
        let process = std::process::id();
        for number in 0..NAMES_MAX {
            let new = parent.join(format!("{NEW_NAME}{process}-{number}"));
            match DirBuilder::new().mode(0o700).create(&new) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(cannot(&new, "be created", &error)),
            }
            let path = parent.join(format!("{NAME}{process}-{number}"));
            // The lock is held before the folder has a name that others look for.
            // What has the name is not replaced, be it a link that leads nowhere.
            let named = lock(&new).and_then(|lock| match path.symlink_metadata() {
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                Err(_) => std::fs::rename(&new, &path).map(|()| lock),
            });
            match named {
                Ok(lock) => {
                    let place = Arc::new(Place {
                        path,
                        is_removed: Mutex::new(false),
                    });
                    let mut folders = locked(&FOLDERS);
                    folders.retain(|folder| folder.strong_count() > 0);
                    folders.push(Arc::downgrade(&place));
                    return Ok(Self { place, _lock: lock });
                }
                Err(error) => {
                    // Where that fails, there is an empty folder with a name that says what it is.
                    let _ = std::fs::remove_dir_all(&new);
                    if !is_taken(&error) {
                        return Err(cannot(&path, "be created", &error));
                    }
                }
            }
        }
        let reason = format!("too many folders {NAME}*: remove those of processes that are gone");
        Err(ConnectError::file(&parent, reason))
    }

    /// Removes all folders of this process, as [`SpillFolder::remove`] does: it is about to end,
    /// and does not wait for threads that still have one.
    pub fn remove_all() {
        let folders = std::mem::take(&mut *locked(&FOLDERS));
        for place in folders.iter().filter_map(Weak::upgrade) {
            place.remove();
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    /// Creates the file `name`, which does not exist yet.
    ///
    /// # Errors
    /// [`ConnectError::File`] when it cannot be created, or the folder was removed.
    pub fn create_file(&self, name: &str) -> Result<(PathBuf, File), ConnectError> {
        let path = self.place.path.join(name);
        let is_removed = locked(&self.place.is_removed);
        if *is_removed {
            return Err(ConnectError::file(&path, "its folder is removed already"));
        }
        let created = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = created.map_err(|error| cannot(&path, "be created", &error))?;
        Ok((path, file))
    }

    /// Removes the files in it, and goes on to be used.
    pub fn clear(&self) {
        let is_removed = locked(&self.place.is_removed);
        if *is_removed {
            return;
        }
        let files = std::fs::read_dir(&self.place.path)
            .into_iter()
            .flatten()
            .flatten();
        for file in files.filter(|file| file.file_name() != LOCK) {
            if let Err(error) = std::fs::remove_file(file.path()) {
                let file = file.path();
                tracing::warn!(file = %file.display(), %error, "a spilled file stays behind");
            }
        }
    }

    /// Removes the folder with all that is in it; nothing can be created there afterwards.
    pub fn remove(&self) {
        self.place.remove();
    }
}

impl Place {
    fn remove(&self) {
        let mut is_removed = locked(&self.is_removed);
        if std::mem::replace(&mut *is_removed, true) {
            return;
        }
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(folder = %self.path.display(), %error, "a spill folder stays behind");
        }
    }
}

impl Drop for SpillFolder {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A flag or a list: a panic leaves neither half done.
fn locked<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the lock of the new folder `folder`, and locks it.
fn lock(folder: &Path) -> io::Result<File> {
    let lock = File::create_new(folder.join(LOCK))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists
            | io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::NotADirectory
    )
}

/// Removes the folders in `parent` whose process is gone. What cannot be looked at or removed,
/// such as that of another user, stays.
fn remove_left_behind(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || !name.to_string_lossy().starts_with(NAME) {
            continue;
        }
        let folder = entry.path();
        let Some(_lock) = take_lock(&folder) else {
            continue;
        };
        if std::fs::remove_dir_all(&folder).is_ok() {
            tracing::info!(folder = %folder.display(), "a spill folder was left behind: removed");
        }
    }
}

/// The lock of `folder`, if nobody holds it.
fn take_lock(folder: &Path) -> Option<File> {
    let path = folder.join(LOCK);
    for _ in 0..LOCK_TRIES_MAX {
        // A pipe would be waited for, and a link may lead to what is of others.
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let lock = OpenOptions::new()
            .write(true)
            .custom_flags(flags.bits().cast_signed())
            .open(&path)
            .ok()?;
        lock.metadata().ok().filter(Metadata::is_file)?;
        lock.try_lock().ok()?;
        // Another process may have removed the folder before the lock was held, and yet another
        // may have made one of the same name since: then it is the lock of nothing.
        if is_at(&lock, &path) {
            return Some(lock);
        }
    }
    None
}

/// Whether `file` is what has the name `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (file.metadata(), path.symlink_metadata()) else {
        return false;
    };
    (held.dev(), held.ino()) == (there.dev(), there.ino())
}

fn cannot(path: &Path, what: &str, error: &io::Error) -> ConnectError {
    ConnectError::file(path, format_args!("cannot {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::FileType;

    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(parent).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_goes_with_all_that_is_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let folder = SpillFolder::create(Some(parent.path())).unwrap();
        let other = SpillFolder::create(Some(parent.path())).unwrap();
        folder.create_file("part").unwrap();
        assert_eq!(names(parent.path()).len(), 2);
        drop(folder);
        assert_eq!(names(parent.path()).len(), 1);
        other.remove();
        assert!(names(parent.path()).is_empty());
        let error = other.create_file("part").unwrap_err().to_string();
        assert!(error.contains("removed already"), "{error}");
    }

    #[test]
    fn a_place_that_was_removed_by_another_thread_takes_nothing_more() {
        let parent = tempfile::tempdir().unwrap();
        let folder = SpillFolder::create(Some(parent.path())).unwrap();
        folder.create_file("part").unwrap();
        let place = Arc::clone(&folder.place);
        std::thread::spawn(move || place.remove()).join().unwrap();
        assert!(names(parent.path()).is_empty());
        assert!(folder.create_file("next").is_err());
        folder.clear();
        drop(folder);
        assert!(names(parent.path()).is_empty());
    }

    #[test]
    fn a_folder_whose_process_is_gone_is_removed_and_others_stay() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("ringway-spill-1-0");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join(LOCK), "").unwrap();
        std::fs::write(left.join("0-0.arrow"), "rows").unwrap();
        let foreign = parent.path().join("ringway-spill-notes");
        std::fs::create_dir(&foreign).unwrap();
        let used = SpillFolder::create(Some(parent.path())).unwrap();
        let folder = SpillFolder::create(Some(parent.path())).unwrap();
        assert!(!left.exists());
        assert!(foreign.exists() && used.path().exists() && folder.path().exists());
    }

    #[test]
    fn what_others_put_in_the_place_of_a_lock_or_a_folder_is_neither_waited_for_nor_followed() {
        let parent = tempfile::tempdir().unwrap();
        let named = |name: &str| parent.path().join(name);
        let foreign = named("foreign");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::write(foreign.join(LOCK), "").unwrap();
        symlink(&foreign, named("ringway-spill-1-0")).unwrap();
        for folder in ["ringway-spill-2-0", "ringway-spill-3-0"] {
            std::fs::create_dir(named(folder)).unwrap();
        }
        let pipe = named("ringway-spill-2-0").join(LOCK);
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        let link = named("ringway-spill-3-0").join(LOCK);
        symlink(foreign.join(LOCK), link).unwrap();
        // The names that it would take next lead nowhere, or to a file.
        let process = std::process::id();
        symlink("nowhere", named(&format!("{NAME}{process}-0"))).unwrap();
        std::fs::write(named(&format!("{NAME}{process}-1")), "").unwrap();
        let before = names(parent.path());
        let folder = SpillFolder::create(Some(parent.path())).unwrap();
        assert_eq!(folder.path(), named(&format!("{NAME}{process}-2")));
        drop(folder);
        assert_eq!(names(parent.path()), before);
        assert!(foreign.join(LOCK).exists());
    }

    #[test]
    fn a_lock_that_was_replaced_before_it_was_held_is_no_lock() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join(LOCK);
        std::fs::write(&path, "").unwrap();
        let replaced = File::open(&path).unwrap();
        assert!(is_at(&replaced, &path));
        std::fs::remove_file(&path).unwrap();
        assert!(!is_at(&replaced, &path));
        std::fs::write(&path, "").unwrap();
        assert!(!is_at(&replaced, &path));
        // Who holds it is the only one, until it is let go.
        let lock = take_lock(parent.path()).unwrap();
        assert!(is_at(&lock, &path) && take_lock(parent.path()).is_none());
        drop(lock);
        assert!(take_lock(parent.path()).is_some());
    }

    #[test]
    fn a_place_where_nothing_can_be_made_is_named() {
        let error = SpillFolder::create(Some(Path::new("/nonexistent/place"))).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/place"), "{error}");
    }
}
