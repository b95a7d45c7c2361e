//! A source that reads splits on a thread beside the worker.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arrow::array::RecordBatch;
use ringway_shm::{Bell, PopError};

use crate::batch::Payload;
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::operator::{Emitter, Source, SourceProgress, Subtask};

use super::channel::{Gone, SideReceiver, SideSender, side_channel};
use super::event_time::latest_event_time;
use super::progress::SplitProgress;
use super::{ConnectError, ConnectorStats, Counters, ListedFile, Split, side_thread};

/// Batches that a reader may be ahead of its worker: enough that neither waits for the other
/// at every batch, few enough that a barrier is not long behind what was read.
const AHEAD_BATCHES_MAX: usize = 4;

/// Bytes that a reader may be ahead of its worker; the last batch may exceed it.
pub(super) const AHEAD_BYTES_MAX: usize = 16 << 20;

/// Batches that one poll emits at most, so that tasks share a core fairly.
const POLL_BATCHES_MAX: usize = 4;

/// Knows a file format: opens splits of files for reading.
pub trait SplitFormat: Send + Sync + 'static {
    /// Opens `split` of `listed`, which is open as `file`. Called on the side thread.
    ///
    /// # Errors
    /// When the file is not of this format, or cannot be read; the error names it.
    fn open(
        &self,
        split: &Split,
        listed: &ListedFile,
        file: File,
    ) -> Result<Box<dyn SplitReader>, ConnectError>;
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

    /// Bytes read and rows left out since the last call.
    fn take_counters(&mut self) -> Counters;
}

/// The input of one subtask of a source that reads splits.
#[derive(Clone)]
pub struct SplitInput {
    /// Knows the files' format.
    pub format: Arc<dyn SplitFormat>,
    /// The files of the source.
    pub files: Arc<[ListedFile]>,
    /// The splits of this subtask, in the order in which they are read.
    pub splits: Vec<Split>,
    /// Where to count.
    pub stats: ConnectorStats,
}

/// What a source reads, on the side thread.
pub(super) trait ReadJob: Send {
    /// Reads all that there is, and hands it to `out`.
    fn run(&mut self, out: &mut ReadOutput<'_>) -> Result<(), Stop>;
}

/// A source that reads on a thread of its own: the splits of one subtask, one after the other,
/// or whatever its job is.
pub struct SplitSource {
    /// None once it runs, and where there is nothing to read.
    job: Option<Box<dyn ReadJob>>,
    stats: ConnectorStats,
    progress: SplitProgress,
    reader: Option<Reader>,
    is_open: bool,
    ended: bool,
}

impl SplitSource {
    /// A source of `input`, with the watermarks that `watermark` asks for.
    pub fn new(input: SplitInput, watermark: Option<super::WatermarkOptions>) -> Self {
        let progress = SplitProgress::new(watermark.as_ref(), &input.splits);
        let stats = input.stats.clone();
        let job = (!input.splits.is_empty()).then(|| Box::new(input) as Box<dyn ReadJob>);
        Self::with(job, stats, progress)
    }

    /// A source of what `job` reads, which is one split.
    pub(super) fn of_job(
        job: Box<dyn ReadJob>,
        stats: ConnectorStats,
        watermark: Option<super::WatermarkOptions>,
    ) -> Self {
        let progress = SplitProgress::new(watermark.as_ref(), &[Split::whole(0)]);
        Self::with(Some(job), stats, progress)
    }

    const fn with(
        job: Option<Box<dyn ReadJob>>,
        stats: ConnectorStats,
        progress: SplitProgress,
    ) -> Self {
        Self {
            job,
            stats,
            progress,
            reader: None,
            is_open: false,
            ended: false,
        }
    }

    fn emit_watermark(&mut self, out: &mut Emitter<'_, RecordBatch>) {
        if let Some(watermark) = self.progress.poll(out.now()) {
            out.watermark(watermark);
        }
    }

    /// Emits what the reader has ready, up to a few batches. Tells whether the input is over.
    fn drain(&mut self, out: &mut Emitter<'_, RecordBatch>) -> Result<Drained, OperatorError> {
        for _ in 0..POLL_BATCHES_MAX {
            if out.is_full() {
                break;
            }
            let Some(reader) = &mut self.reader else {
                return Ok(Drained::End);
            };
            match reader.receiver.try_pop() {
                Ok(Read::Batch {
                    split,
                    batch,
                    latest,
                }) => {
                    self.progress.observe(split, latest);
                    out.emit(batch);
                    // After each batch, so that what a run emits does not depend on how far
                    // the reader was ahead.
                    self.emit_watermark(out);
                }
                Ok(Read::Watermark(watermark)) => out.watermark(watermark),
                Ok(Read::Failed(error)) => return Err(error.into()),
                Err(PopError::Empty) => return Ok(Drained::Empty),
                Err(PopError::Finished) => return Ok(Drained::End),
                Err(PopError::Abandoned) => {
                    return Err(OperatorError::new("the reader of this source is gone"));
                }
            }
        }
        Ok(Drained::Some)
    }
}

enum Drained {
    Some,
    Empty,
    End,
}

impl Source<RecordBatch> for SplitSource {
    fn open(&mut self, subtask: &Subtask, bell: &Bell) -> Result<(), OperatorError> {
        if std::mem::replace(&mut self.is_open, true) {
            return Err(OperatorError::new(format!("{subtask} was opened before")));
        }
        if let Some(job) = self.job.take() {
            self.reader = Some(Reader::start(job, self.stats.clone(), bell)?);
        }
        Ok(())
    }

    fn poll(
        &mut self,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<SourceProgress, OperatorError> {
        if self.ended {
            return Ok(SourceProgress::End);
        }
        let drained = self.drain(out)?;
        if let Drained::End = drained {
            self.ended = true;
            self.reader = None;
            return Ok(SourceProgress::End);
        }
        if let Drained::Some = drained {
            return Ok(SourceProgress::Ready);
        }
        if self.progress.may_be_idle() {
            self.emit_watermark(out);
        }
        Ok(SourceProgress::Pending(self.progress.idle_at()))
    }
}

/// What a reader hands to its worker.
enum Read {
    Batch {
        split: usize,
        batch: RecordBatch,
        latest: Option<EventTime>,
    },
    Watermark(Watermark),
    Failed(ConnectError),
}

/// The worker's end of a side thread that reads. Dropping it stops the thread and does not
/// wait for it: it ends as soon as it looks up from what it reads, and leaves nothing behind.
struct Reader {
    receiver: SideReceiver<Read>,
    /// Held for as long as what is read is wanted.
    _wanted: Arc<()>,
}

impl Reader {
    fn start(
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
        side_thread::spawn(
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
pub(super) struct ReadOutput<'a> {
    sender: &'a mut SideSender<Read>,
    stats: &'a ConnectorStats,
    wanted: &'a Weak<()>,
    reading: &'a mut PathBuf,
}

impl ReadOutput<'_> {
    /// Notes what is being read, for messages.
    pub(super) fn reading(&mut self, path: &Path) {
        path.clone_into(self.reading);
    }

    /// Held by someone for as long as what is read is wanted.
    pub(super) fn wanted(&self) -> Weak<()> {
        self.wanted.clone()
    }

    /// Reads `split` of `listed`, which is the split of number `index`.
    pub(super) fn read_split(
        &mut self,
        index: usize,
        format: &dyn SplitFormat,
        split: &Split,
        listed: &ListedFile,
    ) -> Result<(), Stop> {
        self.reading(&listed.path);
        let file = listed.open()?;
        let again = file
            .try_clone()
            .map_err(|error| ConnectError::file(&listed.path, error))?;
        let read = match format.open(split, listed, file) {
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
    pub(super) fn read_all(
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
            self.batch(split, batch, latest)?;
        }
    }

    /// Hands on a batch of split `split`, with its latest event time where watermarks are made
    /// of that.
    pub(super) fn batch(
        &mut self,
        split: usize,
        batch: RecordBatch,
        latest: Option<EventTime>,
    ) -> Result<(), Stop> {
        let bytes = batch.bytes();
        let read = Read::Batch {
            split,
            batch,
            latest,
        };
        self.sender.push(read, bytes).map_err(Stop::from)
    }

    /// Hands on a watermark that was read, for a source that makes none of its own.
    pub(super) fn watermark(&mut self, watermark: Watermark) -> Result<(), Stop> {
        self.sender
            .push(Read::Watermark(watermark), 0)
            .map_err(Stop::from)
    }

    /// Does nothing for `time`, or until nobody wants to read any more.
    pub(super) fn rest(&mut self, time: Duration) -> Result<(), Stop> {
        self.sender.rest(time).map_err(Stop::from)
    }
}

impl ReadJob for SplitInput {
    fn run(&mut self, out: &mut ReadOutput<'_>) -> Result<(), Stop> {
        for (index, split) in self.splits.iter().enumerate() {
            let listed = &self.files[split.file];
            out.read_split(index, &*self.format, split, listed)?;
            // What was read to its end may still be gone, or not what others read under its name.
            listed.check_place()?;
        }
        Ok(())
    }
}

/// Why the side thread stops before the end of its splits.
pub(super) enum Stop {
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
