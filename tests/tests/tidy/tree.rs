//! The files of the repository, as a person sees them: read from disk, so that a file that is not committed
//! yet is checked too.

use std::fs;
use std::path::{Path, PathBuf};

use crate::items::{self, Function, Module};
use crate::mask;
use crate::modules;

/// One text file. Rust files carry what the rules ask for again and again.
pub(crate) struct File {
    /// Path from the root of the repository, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text with comments and the insides of literals blanked; empty for other files than Rust.
    pub(crate) code: String,
    /// The text with all but comments blanked; empty for other files than Rust.
    pub(crate) comments: String,
    /// Where the file is compiled for tests only, by its own attributes or its place.
    test_regions: Vec<std::ops::Range<usize>>,
    /// Whether the `mod` that leads here is compiled for tests only.
    test_only: bool,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (code, comments) = if path.ends_with(".rs") {
            mask::split(text)
        } else {
            (String::new(), String::new())
        };
        let test_regions = items::test_regions(&code);
        Self {
            path: path.to_string(),
            text: text.to_string(),
            code,
            comments,
            test_regions,
            test_only: false,
        }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(crate) fn is_script(&self) -> bool {
        let plain = !self.path.rsplit('/').next().unwrap_or("").contains('.');
        self.path.ends_with(".sh")
            || self.path.ends_with(".py")
            || plain && (self.path.starts_with("scripts/") || self.path.starts_with(".ci/"))
    }

    /// Whether the code at `offset` is compiled for tests only.
    pub(crate) fn is_test_code(&self, offset: usize) -> bool {
        self.test_only
            || self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || self
                .test_regions
                .iter()
                .any(|region| region.contains(&offset))
    }

    /// The code with what is compiled for tests only blanked too.
    pub(crate) fn library_code(&self) -> String {
        if self.is_test_code(0) {
            return String::new();
        }
        let mut bytes = self.code.clone().into_bytes();
        for region in &self.test_regions {
            mask::blank(&mut bytes[region.clone()]);
        }
        String::from_utf8(bytes).expect("blanking whole regions keeps UTF-8")
    }

    pub(crate) fn functions(&self) -> Vec<Function> {
        items::functions(&self.code)
    }

    pub(crate) fn modules(&self) -> Vec<Module> {
        items::modules(&self.code)
    }

    /// `path:line` of an offset, as editors and terminals understand it.
    pub(crate) fn at(&self, offset: usize) -> String {
        format!("{}:{}", self.path, items::line_of(&self.text, offset))
    }
}

/// All text files below the root of the repository, in the order of their paths.
pub(crate) fn read() -> Vec<File> {
    let root = root();
    let mut paths = Vec::new();
    walk(&root, &mut paths);
    paths.sort();
    let mut files: Vec<File> = paths
        .iter()
        .filter_map(|path| {
            let text = String::from_utf8(fs::read(path).ok()?).ok()?;
            let relative = path.strip_prefix(&root).ok()?.to_str()?;
            Some(File::new(relative, &text))
        })
        .collect();
    assert!(
        files.iter().any(|file| file.path == "Cargo.toml"),
        "{} is not the repository",
        root.display()
    );
    let test_only = modules::test_only(&files);
    for file in &mut files {
        file.test_only = test_only.contains(&file.path);
    }
    files
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the crate lies in the repository")
        .to_path_buf()
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let entry = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().expect("a file on Linux has a type");
        if kind.is_dir() && !is_skipped(&name) {
            walk(&entry.path(), paths);
        } else if kind.is_file() && !matches!(name.as_str(), "Cargo.lock" | ".git") {
            paths.push(entry.path());
        }
    }
}

/// Build output, virtual environments, and whatever tools keep for themselves.
fn is_skipped(folder: &str) -> bool {
    folder.starts_with("target")
        || folder == "__pycache__"
        || folder.starts_with('.') && folder != ".ci"
}
