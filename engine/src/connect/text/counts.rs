//! Counts the lines of files, so that one in the middle of a file can be named by its number.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::connect::files::listed::open_regular;
use crate::connect::{ConnectError, TextCompression};

use super::input::TextInput;

/// The lines that were counted. Clones share them: the subtasks of a source read pieces of the
/// same files.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineCounts {
    /// For each file, how many lines end before a byte.
    files: Arc<Mutex<HashMap<PathBuf, BTreeMap<u64, u64>>>>,
}

impl LineCounts {
    /// How many lines end before the byte `until` of the text of `path`. It is read from where
    /// it was counted to before.
    pub(crate) fn before(
        &self,
        path: &Path,
        compression: TextCompression,
        until: u64,
    ) -> Result<u64, ConnectError> {
        let counted = self.counted(path, until);
        if counted.0 == until {
            return Ok(counted.1);
        }
        let file = open_regular(path)?;
        let lines = count(path, file, compression, counted, until);
        let lines = lines.map_err(|error| ConnectError::file(path, error))?;
        let mut files = self.files();
        let of_file = files.entry(path.to_owned()).or_default();
        of_file.insert(until, lines);
        Ok(lines)
    }

    /// The last byte up to `until` to which was counted, and how many lines end before it.
    fn counted(&self, path: &Path, until: u64) -> (u64, u64) {
        let files = self.files();
        let counts = files.get(path);
        let last = counts.and_then(|counts| counts.range(..=until).next_back());
        last.map_or((0, 0), |(at, lines)| (*at, *lines))
    }

    fn files(&self) -> MutexGuard<'_, HashMap<PathBuf, BTreeMap<u64, u64>>> {
        // Every change is one insertion: a panic leaves nothing half done.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(
    path: &Path,
    file: std::fs::File,
    compression: TextCompression,
    (at, lines): (u64, u64),
    until: u64,
) -> io::Result<u64> {
    let (input, begins) = TextInput::of_file_from(path, file, compression, at)?;
    // Compressed text cannot be entered: it is counted from its start.
    let lines = if begins == at { lines } else { 0 };
    Ok(lines + count_lines(input.take(until - begins))?)
}

fn count_lines(mut text: impl Read) -> io::Result<u64> {
    let (mut part, mut lines) = (vec![0; 64 << 10], 0);
    loop {
        match text.read(&mut part) {
            Ok(0) => return Ok(lines),
            Ok(read) => lines += part[..read].iter().filter(|byte| **byte == b'\n').count() as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn no_part_of_a_file_is_counted_twice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv");
        fs::write(&path, "a\nb\nc\nd\n").unwrap();
        let counts = LineCounts::default();
        let before = |until| {
            let lines = counts.before(&path, TextCompression::None, until);
            lines.unwrap()
        };
        assert_eq!((before(4), before(3)), (2, 1));
        // What it counted before is not looked at again.
        fs::write(&path, "abcdc\nd\n").unwrap();
        assert_eq!((before(8), before(4)), (4, 2));
        fs::remove_file(&path).unwrap();
        assert_eq!((before(8), before(0)), (4, 0));
        assert!(counts.before(&path, TextCompression::None, 9).is_err());
    }

    #[test]
    fn compressed_text_is_counted_as_what_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv.zst");
        fs::write(&path, zstd::encode_all(&b"a\nb\nc\nd\n"[..], 1).unwrap()).unwrap();
        let counts = LineCounts::default();
        for (until, lines) in [(4, 2), (8, 4), (6, 3)] {
            let counted = counts.before(&path, TextCompression::Auto, until);
            assert_eq!(counted.unwrap(), lines);
        }
    }
}
