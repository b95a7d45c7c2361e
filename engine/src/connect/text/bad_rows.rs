//! A file of the rows that were left out, so that they can be mended and read again.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use crate::connect::files::pending::require_folder;
use crate::connect::{ConnectError, ListedFile, OnError};

/// Where the subtasks of a source write the rows that they leave out.
#[derive(Clone, Debug)]
pub(crate) struct BadRows {
    path: Arc<Path>,
    /// What the source reads, which must not be overwritten.
    inputs: Arc<[ListedFile]>,
    file: Arc<Mutex<State>>,
}

/// The file, from when a subtask reads on.
#[derive(Debug, Default)]
enum State {
    /// It is to be made, in place of one from before.
    #[default]
    New,
    /// What is in it stays, for the job goes on from a checkpoint.
    Kept,
    Open(File),
}

impl BadRows {
    /// The file that the option `bad_rows` names, from `base` on, for a source that reads
    /// `inputs`. Nothing is written yet.
    pub(crate) fn new(
        path: Option<&Path>,
        base: &Path,
        on_error: OnError,
        inputs: &[ListedFile],
    ) -> Result<Option<Self>, ConnectError> {
        let Some(path) = path else { return Ok(None) };
        if on_error != OnError::Skip {
            let reason = "needs `on_error = \"skip\"`: otherwise no row is left out";
            return Err(ConnectError::option("bad_rows", reason));
        }
        let path: PathBuf = base.join(path);
        require_folder(&path)?;
        let bad_rows = Self {
            path: path.into(),
            inputs: inputs.into(),
            file: Arc::default(),
        };
        if let Ok(metadata) = std::fs::metadata(&bad_rows.path) {
            bad_rows.require_no_input(&metadata, &bad_rows.inputs)?;
        }
        Ok(Some(bad_rows))
    }

    /// Makes sure that it is not `input`, under whatever name, before that is read.
    pub(crate) fn require_other_than(&self, input: &ListedFile) -> Result<(), ConnectError> {
        match std::fs::metadata(&self.path) {
            Ok(metadata) => self.require_no_input(&metadata, std::slice::from_ref(input)),
            Err(_) => Ok(()),
        }
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps what is in the file: the job goes on from a checkpoint.
    pub(crate) fn keep(&self) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::New = *file {
            *file = State::Kept;
        }
    }

    /// Makes the file, empty, if this job has not done so; one from before is replaced.
    pub(crate) fn start(&self) -> Result<(), ConnectError> {
        self.with_file(|_| Ok(()))
    }

    /// Appends a row: one line of JSON, written at once.
    pub(crate) fn add(
        &self,
        path: &Path,
        line: u64,
        reason: &str,
        text: &[u8],
    ) -> Result<(), ConnectError> {
        let row = json!({
            "file": path.to_string_lossy(),
            "line": line,
            "reason": reason,
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
        let mut state = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let is_kept = match &mut *state {
            State::Open(file) => return write(file).map_err(|error| self.cannot(&error)),
            State::Kept => true,
            State::New => false,
        };
        let mut file = self.create(is_kept)?;
        let written = write(&mut file).map_err(|error| self.cannot(&error));
        *state = State::Open(file);
        written
    }

    /// Opens the file, and only empties it when it is certain that it is no input: since the
    /// job was planned, a link may have come in its place.
    fn create(&self, is_kept: bool) -> Result<File, ConnectError> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path)
            .map_err(|error| self.cannot(&error))?;
        let metadata = file.metadata().map_err(|error| self.cannot(&error))?;
        self.require_no_input(&metadata, &self.inputs)?;
        if metadata.is_file() && !is_kept {
            file.set_len(0).map_err(|error| self.cannot(&error))?;
        }
        Ok(file)
    }

    fn require_no_input(
        &self,
        metadata: &Metadata,
        inputs: &[ListedFile],
    ) -> Result<(), ConnectError> {
        let Some(input) = inputs.iter().find(|input| input.is_same_file(metadata)) else {
            return Ok(());
        };
        let (path, input) = (self.path.display(), input.path.display());
        let reason = format!("{path} is {input}, which this source reads: give another file");
        Err(ConnectError::option("bad_rows", reason))
    }

    fn cannot(&self, error: &std::io::Error) -> ConnectError {
        ConnectError::file(&self.path, format_args!("cannot be written: {error}"))
    }
}
