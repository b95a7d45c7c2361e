//! The files that the sources and sinks of a job read and write.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use super::document::{Document, KeyPath};
use super::error::JobFileError;

/// The files of a job, each with the key that names it.
#[derive(Default)]
pub(super) struct Claims {
    read: Vec<Claim>,
    written: Vec<Claim>,
    /// Files that are read when they come, by pattern.
    watched: Vec<(KeyPath, Pattern)>,
}

/// As files are listed: no `*` stands for parts of several folders.
const BY_COMPONENT: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

struct Claim {
    key: KeyPath,
    path: PathBuf,
}

impl Claims {
    /// What `key` names is read at `paths`.
    pub(super) fn reads(&mut self, key: KeyPath, paths: impl IntoIterator<Item = PathBuf>) {
        self.read.extend(claims(&key, paths));
    }

    /// What `key` names is read when it comes, if it matches one of `patterns`.
    pub(super) fn watches(&mut self, key: &KeyPath, patterns: &[String]) {
        // One that is none was refused where its files were listed.
        let patterns = patterns.iter().filter_map(|text| Pattern::new(text).ok());
        self.watched
            .extend(patterns.map(|pattern| (key.clone(), pattern)));
    }

    /// What `key` names is written to `paths`.
    pub(super) fn writes(&mut self, key: KeyPath, paths: impl IntoIterator<Item = PathBuf>) {
        self.written.extend(claims(&key, paths));
    }

    /// Makes sure that no file is written twice, or read and written.
    ///
    /// # Errors
    /// When one is. The error stands at the key that writes it, and names the other.
    pub(super) fn check(&self, document: &Document) -> Result<(), JobFileError> {
        let refuse = |claim: &Claim, other: &KeyPath, does: &str| {
            let (path, key) = (claim.path.display(), other.join("."));
            let line = document.place(other).line;
            let at = line.map_or_else(String::new, |line| format!(" in line {line}"));
            let message = format!("`{key}`{at} {does} {path} too: name another file");
            Err(document.error(&claim.key, message))
        };
        let mut readers = HashMap::new();
        for claim in &self.read {
            readers.insert(target(&claim.path), &claim.key);
            readers.insert(place(&claim.path), &claim.key);
        }
        for claim in &self.written {
            let comes = |(_, pattern): &&(KeyPath, Pattern)| {
                pattern.matches_path_with(&claim.path, BY_COMPONENT)
            };
            if let Some((reader, _)) = self.watched.iter().find(comes) {
                return refuse(claim, reader, "reads");
            }
        }
        let mut writers = HashMap::new();
        for claim in &self.written {
            let place = place(&claim.path);
            if let Some(reader) = readers.get(&place) {
                return refuse(claim, reader, "reads");
            }
            if let Some(writer) = writers.insert(place, &claim.key) {
                return refuse(claim, writer, "writes");
            }
        }
        Ok(())
    }
}

fn claims(key: &KeyPath, paths: impl IntoIterator<Item = PathBuf>) -> impl Iterator<Item = Claim> {
    paths.into_iter().map(|path| Claim {
        key: key.clone(),
        path,
    })
}

/// A path by one name, whichever way it leads through folders. The file itself may be a link:
/// a sink puts its own in the place of the link.
fn place(path: &Path) -> PathBuf {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    folder.join(path.file_name().unwrap_or_default())
}

/// Where the file of a path is in the end, links followed.
fn target(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
