//! The files that a source names.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::connect::ConnectError;

use super::expand::expand;
use super::listed::ListedFile;

/// The paths of a file source: one, or a list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a path, or a list of paths")]
pub enum Paths {
    /// One path or pattern.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Paths {
    /// The paths, in their order.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(path) => std::slice::from_ref(path),
            Self::Several(paths) => paths,
        }
    }
}

impl From<&str> for Paths {
    fn from(path: &str) -> Self {
        Self::One(path.to_owned())
    }
}

/// Files for people: one by its name, several by the first and their number.
pub(crate) fn describe_files(connector: &str, files: &[ListedFile]) -> String {
    match files {
        [] => format!("{connector}: no file"),
        [only] => format!("{connector}: {}", only.path.display()),
        [first, rest @ ..] => {
            let (first, more) = (first.path.display(), rest.len());
            format!("{connector}: {first} and {more} more files")
        }
    }
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
            if seen.insert(resolved(&path)) {
                files.push(ListedFile::note(path)?);
            }
        }
    }
    Ok(files)
}

/// The files that match `pattern`, by name.
fn matches_of(base: &Path, pattern: &str) -> Result<Vec<PathBuf>, ConnectError> {
    let mut paths = names_of(base, pattern)?;
    if paths.is_empty() {
        return Err(ConnectError::NoMatch {
            pattern: base.join(pattern).display().to_string(),
        });
    }
    // Of several names of one file the one with the fewest folders is meant.
    paths.sort_by_cached_key(|path| (path.components().count(), path.clone()));
    let mut seen = HashSet::new();
    paths.retain(|path| seen.insert(resolved(path)));
    paths.sort();
    Ok(paths)
}

/// The names that match `pattern`, in no particular order: a file may have several.
pub(super) fn names_of(base: &Path, pattern: &str) -> Result<Vec<PathBuf>, ConnectError> {
    let plain = base.join(pattern);
    // A name with brackets in it is first of all a name.
    match plain.is_file() {
        true => Ok(vec![plain]),
        false => expand(base, pattern),
    }
}

/// The path without links: a file to which several lead is there once.
fn resolved(path: &Path) -> PathBuf {
    // One that leads nowhere is refused when it is opened.
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// `pattern` from `base` on. The base is a folder, not part of the pattern: its brackets mean
/// themselves.
pub(crate) fn full_pattern(base: &Path, pattern: &str) -> String {
    let base = glob::Pattern::escape(&base.to_string_lossy());
    let full = Path::new(&base).join(pattern);
    full.to_string_lossy().into_owned()
}
