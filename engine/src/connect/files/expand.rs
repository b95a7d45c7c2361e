//! The files that a pattern matches.

use std::collections::HashSet;
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use glob::Pattern;

use crate::connect::ConnectError;

/// What is not a folder and matches `pattern`, in no particular order. A relative pattern begins
/// at `base`.
///
/// # Errors
/// [`ConnectError::Option`] for a pattern that cannot be understood, [`ConnectError::File`] for a
/// folder that cannot be read.
pub(super) fn expand(base: &Path, pattern: &str) -> Result<Vec<PathBuf>, ConnectError> {
    let mut steps = Vec::new();
    for component in Path::new(pattern).components() {
        steps
            .push(Step::of(component).map_err(|reason| {
                ConnectError::option("path", format!("`{pattern}`: {reason}"))
            })?);
    }
    let mut found = Vec::new();
    follow(base, &steps, &mut found)?;
    Ok(found)
}

/// One part of a pattern, between two slashes.
enum Step<'a> {
    /// A name that means itself.
    Name(&'a Path),
    /// `*`, `?` or `[a-z]` stand for something in a name.
    Names(Pattern),
    /// Any name.
    AnyName,
    /// `**`: this folder, and all that are in it.
    Folders,
}

impl<'a> Step<'a> {
    fn of(component: Component<'a>) -> Result<Self, String> {
        let name = component.as_os_str();
        let text = name.to_string_lossy();
        if text == "**" {
            return Ok(Self::Folders);
        }
        if !matches!(component, Component::Normal(_)) || !text.contains(['*', '?', '[', ']']) {
            return Ok(Self::Name(Path::new(name)));
        }
        let pattern = Pattern::new(&text).map_err(|error| error.to_string())?;
        Ok(Self::Names(pattern))
    }
}

/// Puts what matches `steps` from `path` on into `found`.
fn follow(path: &Path, steps: &[Step<'_>], found: &mut Vec<PathBuf>) -> Result<(), ConnectError> {
    let Some((step, rest)) = steps.split_first() else {
        // What a link leads to may not be there: that is for whoever opens it to say.
        if path.symlink_metadata().is_ok() && !path.is_dir() {
            found.push(path.to_owned());
        }
        return Ok(());
    };
    match step {
        Step::Name(name) => follow(&path.join(name), rest, found),
        Step::Names(pattern) => {
            for entry in entries(path)? {
                if pattern.matches(&entry.file_name().to_string_lossy()) {
                    follow(&path.join(entry.file_name()), rest, found)?;
                }
            }
            Ok(())
        }
        Step::AnyName => entries(path)?
            .iter()
            .try_for_each(|entry| follow(&path.join(entry.file_name()), rest, found)),
        Step::Folders => {
            // At the end it stands for every file.
            let rest = if rest.is_empty() {
                &[Step::AnyName]
            } else {
                rest
            };
            follow_folders(path, rest, &mut HashSet::new(), found)
        }
    }
}

/// Follows `steps` from `folder` and from every folder in it. One that leads back into itself is
/// entered once.
fn follow_folders(
    folder: &Path,
    steps: &[Step<'_>],
    entered: &mut HashSet<(u64, u64)>,
    found: &mut Vec<PathBuf>,
) -> Result<(), ConnectError> {
    let Ok(metadata) = fs::metadata(or_here(folder)) else {
        return Ok(());
    };
    if !metadata.is_dir() || !entered.insert((metadata.dev(), metadata.ino())) {
        return Ok(());
    }
    follow(folder, steps, found)?;
    let names = entries(folder)?.into_iter().map(|entry| entry.file_name());
    let mut folders: Vec<PathBuf> = names.map(|name| folder.join(name)).collect();
    // Real folders before links to them, and always in the same order.
    folders.sort_by_cached_key(|path| (path.is_symlink(), path.clone()));
    for path in folders {
        follow_folders(&path, steps, entered, found)?;
    }
    Ok(())
}

/// What is in `folder`; nothing where there is no such folder.
fn entries(folder: &Path) -> Result<Vec<DirEntry>, ConnectError> {
    let entries = fs::read_dir(or_here(folder)).and_then(Iterator::collect);
    match entries {
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        entries => entries.map_err(|error| ConnectError::file(folder, error)),
    }
}

/// The folder; where nothing is said, the one that the process is in.
fn or_here(folder: &Path) -> &Path {
    match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn patterns_match_names_and_folders() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["a/x.csv", "a/b/x.csv", "a/b/y.txt", "a/b/[1].csv", "z.csv"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        // Every folder leads back to the start in two ways.
        for folder in ["a", "a/b"] {
            symlink(dir.path(), dir.path().join(folder).join("one")).unwrap();
            symlink(dir.path(), dir.path().join(folder).join("two")).unwrap();
        }
        let found = |pattern: &str| {
            let mut found = expand(dir.path(), pattern).unwrap();
            found.sort();
            let names = found.iter().map(|path| {
                let path = path.strip_prefix(dir.path()).unwrap();
                path.to_string_lossy().into_owned()
            });
            names.collect::<Vec<_>>()
        };
        assert_eq!(found("*.csv"), ["z.csv"]);
        assert_eq!(
            found("a/*/?.csv"),
            ["a/b/x.csv", "a/one/z.csv", "a/two/z.csv"]
        );
        assert_eq!(found("**/x.csv"), ["a/b/x.csv", "a/x.csv"]);
        assert_eq!(found("a/b/[[]1].csv"), ["a/b/[1].csv"]);
        assert_eq!(found("a/b/[x-z].*"), ["a/b/x.csv", "a/b/y.txt"]);
        assert_eq!(found("a/../z.csv"), ["a/../z.csv"]);
        assert_eq!(found("**").len(), 5);
        assert!(found("nothing/*").is_empty() && found("z.csv/*").is_empty());
        // Where nothing is said, it begins where the process is.
        let sources = expand(Path::new(""), "src/*.rs").unwrap();
        assert!(
            sources.contains(&PathBuf::from("src/lib.rs")),
            "{sources:?}"
        );
        assert!(!expand(Path::new(""), "**/lib.rs").unwrap().is_empty());
        assert!(expand(dir.path(), "a[").is_err() && expand(dir.path(), "a**").is_err());
    }
}
