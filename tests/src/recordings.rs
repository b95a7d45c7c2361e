//! Answers that were recorded from the reference implementation, where they are at hand.

use std::path::{Path, PathBuf};

/// The environment variable that names the folder of recordings.
pub const FOLDER_VARIABLE: &str = "RINGWAY_VECTORS";

/// The folder of recordings of this kind; nothing where the variable is not set.
///
/// # Panics
/// If the variable names a folder that has none of that kind: nothing would be compared.
pub fn recordings(kind: &str) -> Option<PathBuf> {
    let folder = Path::new(&std::env::var_os(FOLDER_VARIABLE)?).join(kind);
    let entries = std::fs::read_dir(&folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    assert!(entries.count() > 0, "{} is empty", folder.display());
    Some(folder)
}

/// The bytes of a recording.
///
/// # Panics
/// If it is not there.
pub fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
