//! Reads on a thread beside the worker.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arrow::array::RecordBatch;
use ringway_shm::{Bell, PopError};

use crate::batch::Payload;
use crate::connect::event_time::latest_event_time;
use crate::connect::{ConnectError, ConnectorStats, Counters, ListedFile, Position, Split};
use crate::element::{EventTime, Watermark};

use super::channel::{Gone, SideReceiver, SideSender, side_channel};
use super::thread;

/// Batches that a reader may be ahead of its worker: enough that neither waits for the other
/// at every batch, few enough that a barrier is not long behind what was read.
const AHEAD_BATCHES_MAX: usize = 4;

/// Bytes that a reader may be ahead of its worker; the last batch may exceed it.
pub(crate) const AHEAD_BYTES_MAX: usize = 16 << 20;

/// Knows a file format: opens splits of files for reading.
pub trait SplitFormat: Send + Sync + 'static {
    /// Opens `split` of `listed`, which is open as `file`, to read what is after `from`. Called
    /// on the side thread.
    ///
    /// # Errors
    /// When the file is not of this format, or cannot be read; the error names it.
    fn open(
        &self,
        split: &Split,
        from: Position,
        listed: &ListedFile,
        file: File,
    ) -> Result<Box<dyn SplitReader>, ConnectError>;

    /// The job goes on from a checkpoint: called before any split is opened then.
    fn resume(&self) {}
}

/// Reads one split, on the side thread. It may block.
pub trait SplitReader {
    /// The next batch, of the source's schema and at most [`crate::limits::BATCH_ROWS`] rows;
    /// none at the end of the split. One without rows is not handed on: where there is much to
    /// read between two rows, it lets the thread see whether anyone still wants them.
    ///
    /// # Errors
    /// When the split cannot be read or understood; the error names the file and, where there
    /// are lines, the line.
    fn next(&mut self) -> Result<Option<RecordBatch>, ConnectError>;

    /// How far the split was read with the batch that `next` gave last: a reader that is opened
    /// from there gives exactly what this one gives next.
    fn position(&self) -> Position;

    /// Bytes read and rows left out since the last call.
    fn take_counters(&mut self) -> Counters;
}

/// What a source reads, on the side thread.
pub(crate) trait ReadJob: Send {
    /// Reads all that there is, and hands it to `out`.
    fn run(&mut self, out: &mut ReadOutput<'_>) -> Result<(), Stop>;
}

/// What a job tells its source of how far it is.
pub(crate) enum Note {
    /// All before the position, of the split of this number in the job, was handed on.
    Reached(usize, Position),
    /// All of that split was.
    Done(usize),
    /// This file came, and is read next.
    Came(Box<ListedFile>),
    /// What was read from there is gone.
    Left(PathBuf),
}

/// What a reader hands to its worker.
pub(crate) enum Read {
    Batch {
        split: usize,
        batch: RecordBatch,
        latest: Option<EventTime>,
        /// How far the split was read with it.
        after: Position,
    },
    /// One that was read, for a source that makes none of its own.
    Watermark(Watermark),
    Note(Note),
    Failed(ConnectError),
}

/// The worker's end of a side thread that reads. Dropping it stops the thread and does not
/// wait for it: it ends as soon as it looks up from what it reads, and leaves nothing behind.
pub(crate) struct Reader {
    receiver: SideReceiver<Read>,
    /// Held for as long as what is read is wanted.
    _wanted: Arc<()>,
}

impl Reader {
    pub(crate) fn start(
        job: Box<dyn ReadJob>,
        stats: ConnectorStats,
        bell: &Bell,
    ) -> Result<Self, ConnectError> {
        let (sender, receiver) = side_channel(
            AHEAD_BATCHES_MAX,
            AHEAD_BYTES_MAX,
            Bell::thread(),
            bell.clone(),
        );
        let wanted = Arc::new(());
        let state = ReaderThread {
            job,
            stats,
            sender: Some(sender),
            wanted: Arc::downgrade(&wanted),
            reading: PathBuf::new(),
        };
        thread::spawn(
            "ringway-read",
            state,
            ReaderThread::run,
            ReaderThread::panicked,
        )?;
        Ok(Self {
            receiver,
            _wanted: wanted,
        })
    }

    /// What the thread has ready.
    pub(crate) fn try_pop(&mut self) -> Result<Read, PopError> {
        self.receiver.try_pop()
    }
}

/// What the side thread owns.
struct ReaderThread {
    job: Box<dyn ReadJob>,
    stats: ConnectorStats,
    sender: Option<SideSender<Read>>,
    wanted: Weak<()>,
    reading: PathBuf,
}

impl ReaderThread {
    fn run(&mut self) {
        let Some(sender) = &mut self.sender else {
            return;
        };
        let mut out = ReadOutput {
            sender,
            stats: &self.stats,
            wanted: &self.wanted,
            reading: &mut self.reading,
        };
        match self.job.run(&mut out) {
            Ok(()) => self.finish(),
            Err(Stop::Gone) => {}
            Err(Stop::Failed(error)) => self.fail(error),
        }
    }

    fn panicked(&mut self, reason: String) {
        let what = self.reading.display().to_string();
        self.fail(ConnectError::Panicked { what, reason });
    }

    fn finish(&mut self) {
        if let Some(sender) = self.sender.take() {
            sender.finish();
        }
    }

    fn fail(&mut self, error: ConnectError) {
        if let Some(sender) = &mut self.sender {
            // Where the worker is gone nobody wants to know.
            let _ = sender.push(Read::Failed(error), 0);
        }
        // Without finishing, so that no later poll takes it for the end.
        self.sender = None;
    }
}

/// Where a job hands what it reads.
pub(crate) struct ReadOutput<'a> {
    sender: &'a mut SideSender<Read>,
    stats: &'a ConnectorStats,
    wanted: &'a Weak<()>,
    reading: &'a mut PathBuf,
}

impl ReadOutput<'_> {
    /// Notes what is being read, for messages.
    pub(crate) fn reading(&mut self, path: &Path) {
        path.clone_into(self.reading);
    }

    /// Held by someone for as long as what is read is wanted.
    pub(crate) fn wanted(&self) -> Weak<()> {
        self.wanted.clone()
    }

    /// Reads what is after `from` of `split` of `listed`, which is the split of number `index`.
    pub(crate) fn read_split(
        &mut self,
        index: usize,
        format: &dyn SplitFormat,
        split: &Split,
        from: Position,
        listed: &ListedFile,
    ) -> Result<(), Stop> {
        self.reading(&listed.path);
        let file = listed.open()?;
        let again = file
            .try_clone()
            .map_err(|error| ConnectError::file(&listed.path, error))?;
        let read = match format.open(split, from, listed, file) {
            Ok(mut reader) => self.read_all(index, &mut *reader),
            Err(error) => Err(error.into()),
        };
        if let Err(Stop::Gone) = read {
            return read;
        }
        // A file that was written while it was read may have been read half old, half new, and
        // what is wrong with that is not its fault.
        listed.check(&again)?;
        read
    }

    /// Reads `reader`, which is split `split`, to its end.
    pub(crate) fn read_all(
        &mut self,
        split: usize,
        reader: &mut dyn SplitReader,
    ) -> Result<(), Stop> {
        loop {
            if self.sender.is_abandoned() {
                return Err(Stop::Gone);
            }
            let batch = reader.next()?;
            let mut counters = reader.take_counters();
            let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
            counters.rows = rows as u64;
            counters.batches = u64::from(rows > 0);
            self.stats.add(&counters);
            let Some(batch) = batch else { return Ok(()) };
            if rows == 0 {
                continue;
            }
            let latest = latest_event_time(&batch);
            self.batch(split, batch, latest, reader.position())?;
        }
    }

    /// Hands on a batch of split `split`, with its latest event time where watermarks are made
    /// of that.
    pub(crate) fn batch(
        &mut self,
        split: usize,
        batch: RecordBatch,
        latest: Option<EventTime>,
        after: Position,
    ) -> Result<(), Stop> {
        let bytes = batch.bytes();
        let read = Read::Batch {
            split,
            batch,
            latest,
            after,
        };
        self.sender.push(read, bytes).map_err(Stop::from)
    }

    /// Hands on a watermark that was read, for a source that makes none of its own.
    pub(crate) fn watermark(&mut self, watermark: Watermark) -> Result<(), Stop> {
        let read = Read::Watermark(watermark);
        self.sender.push(read, 0).map_err(Stop::from)
    }

    /// Tells the source how far the job is.
    pub(crate) fn note(&mut self, note: Note) -> Result<(), Stop> {
        self.sender.push(Read::Note(note), 0).map_err(Stop::from)
    }

    /// Does nothing for `time`, or until nobody wants to read any more.
    pub(crate) fn rest(&mut self, time: Duration) -> Result<(), Stop> {
        self.sender.rest(time).map_err(Stop::from)
    }
}

/// Why the side thread stops before the end of its splits.
pub(crate) enum Stop {
    Gone,
    Failed(ConnectError),
}

impl From<Gone> for Stop {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<ConnectError> for Stop {
    fn from(error: ConnectError) -> Self {
        Self::Failed(error)
    }
}
