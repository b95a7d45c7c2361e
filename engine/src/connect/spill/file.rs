//! Batches put aside in Arrow IPC streams, to be read again by the same process.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;

use crate::connect::arrow::pieces::pieces;
use crate::connect::{ArrowCompression, ConnectError, ListedFile};
use crate::limits::BATCH_ROWS;
use crate::wire::compact::compacted;
use crate::wire::ipc::{IpcError, IpcStreamReader};

use super::folder::SpillFolder;

/// Bytes that are written to or read from a file at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// A file of batches that is complete.
#[derive(Clone, Debug)]
pub struct SpilledFile {
    listed: ListedFile,
    /// How many rows it has.
    pub rows: u64,
}

/// How many bytes may be put aside, and how many were. Clones share both.
#[derive(Clone, Debug)]
pub struct SpillBudget {
    bytes_max: u64,
    used: Arc<Mutex<u64>>,
}

/// Writes batches one after the other: into one file, or into another from where their schema
/// changes. It blocks: it is for threads beside the workers.
pub struct SpillWriter {
    folder: Arc<SpillFolder>,
    budget: SpillBudget,
    compression: ArrowCompression,
    /// What the names of its files begin with.
    stem: String,
    open: Option<OpenFile>,
    files: Vec<SpilledFile>,
}

/// Reads a file of batches. It blocks.
pub struct SpillReader {
    batches: IpcStreamReader<BufReader<File>>,
    file: File,
    spilled: SpilledFile,
    rows: u64,
}

struct OpenFile {
    writer: StreamWriter<BufWriter<Budgeted>>,
    schema: SchemaRef,
    path: PathBuf,
    rows: u64,
}

/// A file that takes no more bytes than there are left.
struct Budgeted {
    file: File,
    budget: SpillBudget,
}

impl SpillBudget {
    /// At most `bytes_max`, of which none is used.
    pub fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            used: Arc::default(),
        }
    }

    /// Bytes that were written.
    pub fn used_bytes(&self) -> u64 {
        *self.used()
    }

    /// Gives back what removed files took.
    pub fn give_back(&self, bytes: u64) {
        let mut used = self.used();
        *used = used.saturating_sub(bytes);
    }

    fn take(&self, bytes: u64) -> bool {
        let mut used = self.used();
        let fits = *used + bytes <= self.bytes_max;
        if fits {
            *used += bytes;
        }
        fits
    }

    fn used(&self) -> MutexGuard<'_, u64> {
        // It is one number: a panic leaves nothing half done.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpilledFile {
    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.listed.size_bytes
    }

    /// Opens it.
    ///
    /// # Errors
    /// [`ConnectError::File`] when it is gone, or not what was written.
    pub fn open(&self) -> Result<SpillReader, ConnectError> {
        let file = self.listed.open().map_err(|error| self.changed(error))?;
        let again = file.try_clone();
        let again = again.map_err(|error| ConnectError::file(&self.listed.path, error))?;
        let batches = IpcStreamReader::new(BufReader::with_capacity(BUFFER_BYTES, file));
        Ok(SpillReader {
            batches: batches.map_err(|error| self.unreadable(&error))?,
            file: again,
            spilled: self.clone(),
            rows: 0,
        })
    }

    /// Removes it; what cannot be removed goes with its folder.
    pub fn remove(&self) {
        let _ = std::fs::remove_file(&self.listed.path);
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.listed.path
    }

    fn changed(&self, error: ConnectError) -> ConnectError {
        let reason = match error {
            ConnectError::File { reason, .. } => reason,
            other => other.to_string(),
        };
        ConnectError::file(
            &self.listed.path,
            format_args!(
                "what was spilled there is not what was written: something outside of the job \
                 removed or changed it ({reason})"
            ),
        )
    }

    fn unreadable(&self, error: &IpcError) -> ConnectError {
        ConnectError::file(
            &self.listed.path,
            format_args!("what was spilled there cannot be read: {error}"),
        )
    }
}

impl SpillWriter {
    /// A writer into files of `folder` whose names begin with `stem`.
    pub fn new(
        folder: Arc<SpillFolder>,
        stem: String,
        compression: ArrowCompression,
        budget: SpillBudget,
    ) -> Self {
        Self {
            folder,
            budget,
            compression,
            stem,
            open: None,
            files: Vec::new(),
        }
    }

    /// Writes a batch, in pieces of at most [`BATCH_ROWS`] rows.
    ///
    /// # Errors
    /// When there is no room for it, neither on the disk nor in the budget; the error names
    /// the file.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ConnectError> {
        pieces(batch, BATCH_ROWS).try_for_each(|piece| self.write_piece(&piece))
    }

    /// Ends the last file. All that were written.
    ///
    /// # Errors
    /// As for `write`.
    pub fn finish(mut self) -> Result<Vec<SpilledFile>, ConnectError> {
        self.close()?;
        Ok(self.files)
    }

    fn write_piece(&mut self, piece: &RecordBatch) -> Result<(), ConnectError> {
        if let Some(open) = &self.open
            && open.schema != piece.schema()
        {
            self.close()?;
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.create(piece.schema())?,
        };
        let written = compacted(piece)
            .and_then(|compact| open.writer.write(compact.as_ref().unwrap_or(piece)));
        written.map_err(|error| self.refused(&open.path, &error))?;
        open.rows += piece.num_rows() as u64;
        self.open = Some(open);
        Ok(())
    }

    fn create(&self, schema: SchemaRef) -> Result<OpenFile, ConnectError> {
        let name = format!("{}-{}.arrow", self.stem, self.files.len());
        let (path, file) = self.folder.create_file(&name)?;
        let budget = self.budget.clone();
        let file = BufWriter::with_capacity(BUFFER_BYTES, Budgeted { file, budget });
        let options = self.compression.write_options();
        let writer =
            options.and_then(|options| StreamWriter::try_new_with_options(file, &schema, options));
        Ok(OpenFile {
            writer: writer.map_err(|error| self.refused(&path, &error))?,
            schema,
            path,
            rows: 0,
        })
    }

    fn close(&mut self) -> Result<(), ConnectError> {
        let Some(OpenFile {
            writer, path, rows, ..
        }) = self.open.take()
        else {
            return Ok(());
        };
        let file = writer.into_inner().and_then(|mut file| Ok(file.flush()?));
        file.map_err(|error| self.refused(&path, &error))?;
        let listed = ListedFile::note(path)?;
        self.files.push(SpilledFile { listed, rows });
        Ok(())
    }

    fn refused(&self, path: &Path, error: &ArrowError) -> ConnectError {
        if let ArrowError::IoError(_, error) = error
            && error.kind() == io::ErrorKind::QuotaExceeded
            && error.get_ref().is_some()
        {
            return ConnectError::file(path, error);
        }
        ConnectError::file(path, format_args!("cannot be written: {error}"))
    }
}

impl SpillReader {
    /// The next batch; none at the end.
    ///
    /// # Errors
    /// [`ConnectError::File`] when it cannot be read, or is not what was written.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, ConnectError> {
        let next = match self.batches.next_batch() {
            Ok(next) => next,
            // A file that was changed is not to blame for what it holds now.
            Err(error) => {
                self.check()?;
                return Err(self.spilled.unreadable(&error));
            }
        };
        match &next {
            Some(batch) => self.rows += batch.num_rows() as u64,
            None => {
                self.check()?;
                if self.rows != self.spilled.rows {
                    let message = format!("{} rows of {}", self.rows, self.spilled.rows);
                    return Err(self.spilled.unreadable(&IpcError::Input(message)));
                }
            }
        }
        Ok(next)
    }

    fn check(&self) -> Result<(), ConnectError> {
        let listed = &self.spilled.listed;
        let checked = listed.check(&self.file);
        checked.map_err(|error| self.spilled.changed(error))
    }
}

impl Write for Budgeted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let asked = bytes.len() as u64;
        if !self.budget.take(asked) {
            let message = format!(
                "more than {} bytes would be spilled: set `spill_max` to more if the disk has it",
                self.budget.bytes_max
            );
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
        }
        let written = self.file.write(bytes);
        let done = *written.as_ref().unwrap_or(&0) as u64;
        self.budget.give_back(asked - done);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
