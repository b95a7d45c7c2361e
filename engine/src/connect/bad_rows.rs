//! A file of the rows that were left out, so that they can be mended and read again.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::pending_file::require_folder;
use super::text_rows::BadLine;
use super::{ConnectError, OnError};

/// Where the subtasks of a source write the rows that they leave out.
#[derive(Clone, Debug)]
pub(super) struct BadRows {
    path: Arc<Path>,
    /// Open once a subtask reads.
    file: Arc<Mutex<Option<File>>>,
}

impl BadRows {
    /// The file that the option `bad_rows` names, from `base` on. Nothing is written yet.
    pub(super) fn new(
        path: Option<&Path>,
        base: &Path,
        on_error: OnError,
    ) -> Result<Option<Self>, ConnectError> {
        let Some(path) = path else { return Ok(None) };
        if on_error != OnError::Skip {
            let reason = "needs `on_error = \"skip\"`: otherwise no row is left out";
            return Err(ConnectError::option("bad_rows", reason));
        }
        let path: PathBuf = base.join(path);
        require_folder(&path)?;
        Ok(Some(Self {
            path: path.into(),
            file: Arc::default(),
        }))
    }

    /// Where the file is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file, empty, if this job has not done so; one from before is replaced.
    pub(super) fn start(&self) -> Result<(), ConnectError> {
        self.with_file(|_| Ok(()))
    }

    /// Appends a row: one line of JSON, written at once.
    pub(super) fn add(&self, path: &Path, line: &BadLine, text: &[u8]) -> Result<(), ConnectError> {
        let row = json!({
            "file": path.to_string_lossy(),
            "line": line.number,
            "reason": line.reason,
            "row": String::from_utf8_lossy(text).trim_end_matches(['\r', '\n']),
        });
        let mut row = row.to_string();
        row.push('\n');
        self.with_file(|file| file.write_all(row.as_bytes()))
    }

    fn with_file(
        &self,
        write: impl FnOnce(&mut File) -> std::io::Result<()>,
    ) -> Result<(), ConnectError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match &mut *file {
            Some(file) => Ok(file),
            none => File::create(&self.path).map(|file| none.insert(file)),
        };
        opened.and_then(write).map_err(|error| {
            ConnectError::file(&self.path, format_args!("cannot be written: {error}"))
        })
    }
}
