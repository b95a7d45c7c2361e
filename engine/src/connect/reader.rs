//! A source that reads splits on a thread beside the worker.

use std::fs::File;
use std::sync::Arc;
use std::thread::JoinHandle;

use arrow::array::RecordBatch;
use ringway_shm::{Bell, PopError};

use crate::batch::Payload;
use crate::element::EventTime;
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
    /// none at the end of the split.
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

/// A source that reads the splits of one subtask, one after the other, on a thread of its own.
pub struct SplitSource {
    input: Option<SplitInput>,
    progress: SplitProgress,
    reader: Option<Reader>,
    ended: bool,
}

impl SplitSource {
    /// A source of `input`, with the watermarks that `watermark` asks for.
    pub fn new(input: SplitInput, watermark: Option<super::WatermarkOptions>) -> Self {
        let progress = SplitProgress::new(watermark.as_ref(), &input.splits);
        Self {
            input: Some(input),
            progress,
            reader: None,
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
        let input = self
            .input
            .take()
            .ok_or_else(|| OperatorError::new(format!("{subtask} was opened before")))?;
        if !input.splits.is_empty() {
            self.reader = Some(Reader::start(input, bell)?);
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
    Failed(ConnectError),
}

/// The worker's end of a side thread that reads. Dropping it stops and joins the thread.
struct Reader {
    receiver: SideReceiver<Read>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    fn start(input: SplitInput, bell: &Bell) -> Result<Self, ConnectError> {
        let (sender, receiver) = side_channel(
            AHEAD_BATCHES_MAX,
            AHEAD_BYTES_MAX,
            Bell::thread(),
            bell.clone(),
        );
        let state = ReaderThread {
            input,
            sender: Some(sender),
            reading: 0,
        };
        let thread = side_thread::spawn(
            "ringway-read",
            state,
            ReaderThread::run,
            ReaderThread::panicked,
        )?;
        Ok(Self {
            receiver,
            thread: Some(thread),
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.receiver.close();
        if let Some(thread) = self.thread.take() {
            // A panic was caught inside, and told.
            let _ = thread.join();
        }
    }
}

/// What the side thread owns.
struct ReaderThread {
    input: SplitInput,
    sender: Option<SideSender<Read>>,
    reading: usize,
}

impl ReaderThread {
    fn run(&mut self) {
        match self.read_all() {
            Ok(()) => self.finish(),
            Err(Stop::Gone) => {}
            Err(Stop::Failed(error)) => self.fail(error),
        }
    }

    fn panicked(&mut self, reason: String) {
        let file = self.input.splits.get(self.reading);
        let what = file.map_or_else(String::new, |split| {
            self.input.files[split.file].path.display().to_string()
        });
        self.fail(ConnectError::Panicked { what, reason });
    }

    fn read_all(&mut self) -> Result<(), Stop> {
        for index in 0..self.input.splits.len() {
            self.reading = index;
            self.read_split(index)?;
        }
        Ok(())
    }

    fn read_split(&mut self, index: usize) -> Result<(), Stop> {
        let split = &self.input.splits[index];
        let listed = &self.input.files[split.file];
        let file = listed.open()?;
        let again = file
            .try_clone()
            .map_err(|error| ConnectError::file(&listed.path, error))?;
        let sender = self.sender.as_mut().ok_or(Stop::Gone)?;
        let mut reader = self.input.format.open(split, listed, file)?;
        loop {
            if sender.is_abandoned() {
                return Err(Stop::Gone);
            }
            let batch = reader.next()?;
            let mut counters = reader.take_counters();
            if let Some(batch) = &batch {
                counters.rows = batch.num_rows() as u64;
                counters.batches = 1;
            }
            self.input.stats.add(&counters);
            let Some(batch) = batch else { break };
            let (latest, bytes) = (latest_event_time(&batch), batch.bytes());
            let read = Read::Batch {
                split: index,
                batch,
                latest,
            };
            sender.push(read, bytes)?;
        }
        // A file that was written while it was read may have been read half old, half new.
        listed.check(&again)?;
        Ok(())
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

/// Why the side thread stops before the end of its splits.
enum Stop {
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
