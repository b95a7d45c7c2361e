//! The two halves of a blocking exchange: a sink that spills, and a source that reads it again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use ringway_shm::{Bell, PopError};

use crate::clock::ProcessingTime;
use crate::connect::side::reader::{Read, ReadJob, ReadOutput, Reader, Stop};
use crate::connect::{
    ArrowCompression, BatchWriter, ConnectError, ConnectorStats, Position, WriterSink,
};
use crate::element::Watermark;
use crate::error::OperatorError;
use crate::operator::{Emitter, Progress, Sink, Source, SourceProgress, Subtask};

use super::file::{SpillBudget, SpillWriter, SpilledFile};
use super::folder::SpillFolder;

/// Bytes that a blocking exchange may spill, unless it says otherwise.
const SPILL_BYTES_MAX: u64 = 16 << 30;

/// How a blocking exchange puts rows aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockingOptions {
    /// The folder in which it makes a folder of its own. Default: the system's folder for such
    /// files.
    pub spill_dir: Option<PathBuf>,
    /// Bytes that it may spill, all subtasks together. Default: 16 GiB.
    pub spill_max_bytes: u64,
    /// How the buffers of a batch are compressed. Default: not at all.
    pub compression: ArrowCompression,
    /// How often the stage that reads it is run again after it failed. Default: 1.
    pub restarts: u32,
}

/// What a blocking exchange did in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpillReport {
    /// Its name.
    pub name: String,
    /// Rows that were spilled.
    pub rows: u64,
    /// Bytes that were spilled.
    pub bytes: u64,
    /// How often the stage that reads them was started.
    pub reads: u32,
}

/// A blocking exchange: what its sinks have spilled, for its sources. The folder is there only
/// while a job runs.
pub struct Spill {
    name: String,
    options: BlockingOptions,
    run: Mutex<Option<Run>>,
}

/// What there is of an exchange while a job runs.
struct Run {
    folder: Arc<SpillFolder>,
    budget: SpillBudget,
    /// How often its sinks were made anew.
    attempt: u32,
    /// What was written, by the subtask that did.
    outputs: BTreeMap<u32, Spilled>,
    report: SpillReport,
}

/// What one subtask has spilled.
#[derive(Clone, Default)]
struct Spilled {
    files: Vec<SpilledFile>,
    marks: Vec<Mark>,
}

/// A watermark, and the rows that are before it.
#[derive(Clone, Copy)]
struct Mark {
    rows: u64,
    watermark: Watermark,
}

impl Default for BlockingOptions {
    fn default() -> Self {
        Self {
            spill_dir: None,
            spill_max_bytes: SPILL_BYTES_MAX,
            compression: ArrowCompression::None,
            restarts: 1,
        }
    }
}

impl Spill {
    /// An exchange that has spilled nothing.
    pub fn new(name: String, options: BlockingOptions) -> Arc<Self> {
        Arc::new(Self {
            name,
            options,
            run: Mutex::new(None),
        })
    }

    /// Its options.
    pub fn options(&self) -> &BlockingOptions {
        &self.options
    }

    /// Makes its folder: a job begins.
    ///
    /// # Errors
    /// When the folder cannot be made, or another run of the same plan has one.
    pub fn begin(&self) -> Result<(), OperatorError> {
        let mut run = self.run();
        if run.is_some() {
            let message = "the plan is running already: plan the job anew to run it twice";
            return Err(OperatorError::new(message));
        }
        *run = Some(Run {
            folder: Arc::new(SpillFolder::create(self.options.spill_dir.as_deref())?),
            budget: SpillBudget::new(self.options.spill_max_bytes),
            attempt: 0,
            outputs: BTreeMap::new(),
            report: SpillReport {
                name: self.name.clone(),
                ..SpillReport::default()
            },
        });
        Ok(())
    }

    /// What was spilled by an attempt that failed is removed, be it complete or not: its sinks
    /// are gone, and are made anew.
    pub fn begin_again(&self) {
        if let Some(run) = &mut *self.run() {
            run.attempt += 1;
            run.outputs.clear();
            run.folder.clear();
            run.budget = SpillBudget::new(self.options.spill_max_bytes);
        }
    }

    /// The stage that reads it is about to start.
    pub fn read_begins(&self) {
        if let Some(run) = &mut *self.run() {
            run.report.reads += 1;
        }
    }

    /// Nothing reads it any more: what was spilled is removed.
    pub fn discard(&self) {
        if let Some(run) = &mut *self.run() {
            run.count();
            run.folder.remove();
            run.outputs.clear();
        }
    }

    /// The job is over: the folder is removed. What the exchange did.
    pub fn end(&self) -> Option<SpillReport> {
        let mut run = self.run().take()?;
        run.count();
        run.folder.remove();
        Some(run.report.clone())
    }

    /// The half that spills, for one subtask.
    ///
    /// # Errors
    /// When no job runs that it is part of.
    pub fn sink(self: &Arc<Self>, subtask: &Subtask) -> Result<SpillSink, OperatorError> {
        let run = self.run();
        let run = run.as_ref().ok_or_else(|| self.not_running())?;
        let stem = format!("{}-{}", subtask.index, run.attempt);
        let target = run.folder.path().join(&stem).display().to_string();
        let (folder, budget) = (run.folder.clone(), run.budget.clone());
        let (compression, written) = (self.options.compression, Arc::<Mutex<_>>::default());
        let to = Arc::clone(&written);
        let start = move || -> Result<Box<dyn BatchWriter>, ConnectError> {
            let writer = SpillWriter::new(folder, stem, compression, budget);
            Ok(Box::new(ExchangeWriter {
                writer,
                written: to,
            }))
        };
        let stats = ConnectorStats::default();
        Ok(SpillSink {
            spill: Arc::clone(self),
            index: subtask.index,
            inner: WriterSink::new(target, Box::new(start), stats),
            written,
            is_ending: false,
            rows: 0,
            marks: Vec::new(),
        })
    }

    /// The half that reads, for one subtask: what every so many-th sending subtask spilled.
    ///
    /// # Errors
    /// When no job runs that it is part of.
    pub fn source(&self, subtask: &Subtask) -> Result<SpillSource, OperatorError> {
        let run = self.run();
        let run = run.as_ref().ok_or_else(|| self.not_running())?;
        let subtasks = subtask.parallelism.subtasks();
        let own = run.outputs.iter();
        let own = own.filter(|(sender, _)| *sender % subtasks == subtask.index);
        let job = SpillRead {
            outputs: own.map(|(_, spilled)| spilled.clone()).collect(),
        };
        Ok(SpillSource {
            job: Some(job),
            reader: None,
        })
    }

    fn not_running(&self) -> OperatorError {
        let name = &self.name;
        OperatorError::new(format!("the blocking exchange {name} is of no running job"))
    }

    fn run(&self) -> MutexGuard<'_, Option<Run>> {
        // Every change under the lock leaves it whole.
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    /// Counts what is there before it goes.
    fn count(&mut self) {
        for file in self.outputs.values().flat_map(|spilled| &spilled.files) {
            self.report.rows += file.rows;
            self.report.bytes += file.bytes();
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.folder.remove();
    }
}

/// The half of a blocking exchange that spills, for one subtask.
pub struct SpillSink {
    spill: Arc<Spill>,
    index: u32,
    inner: WriterSink,
    /// The files, once all are written.
    written: Arc<Mutex<Vec<SpilledFile>>>,
    is_ending: bool,
    rows: u64,
    marks: Vec<Mark>,
}

impl SpillSink {
    /// Lets the other half have what was spilled, once the stream has ended.
    fn publish(&mut self, progress: Progress) -> Progress {
        if self.is_ending && progress == Progress::Done {
            let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            let spilled = Spilled {
                files: std::mem::take(&mut *written),
                marks: std::mem::take(&mut self.marks),
            };
            if let Some(run) = &mut *self.spill.run() {
                run.outputs.insert(self.index, spilled);
            }
            self.is_ending = false;
        }
        progress
    }
}

impl Sink<RecordBatch> for SpillSink {
    fn open(&mut self, subtask: &Subtask, bell: &Bell) -> Result<(), OperatorError> {
        self.inner.open(subtask, bell)
    }

    fn write(
        &mut self,
        batch: RecordBatch,
        now: ProcessingTime,
    ) -> Result<Progress, OperatorError> {
        self.rows += batch.num_rows() as u64;
        self.inner.write(batch, now)
    }

    fn resume(&mut self, now: ProcessingTime) -> Result<Progress, OperatorError> {
        let progress = self.inner.resume(now)?;
        Ok(self.publish(progress))
    }

    fn on_watermark(&mut self, watermark: Watermark) -> Result<(), OperatorError> {
        // Of those without a row between them the last one says all.
        self.marks.pop_if(|mark| mark.rows == self.rows);
        self.marks.push(Mark {
            rows: self.rows,
            watermark,
        });
        Ok(())
    }

    fn is_inner(&self) -> bool {
        true
    }

    fn on_end(&mut self, now: ProcessingTime) -> Result<Progress, OperatorError> {
        self.is_ending = true;
        let progress = self.inner.on_end(now)?;
        Ok(self.publish(progress))
    }
}

/// Writes on the side thread.
struct ExchangeWriter {
    writer: SpillWriter,
    written: Arc<Mutex<Vec<SpilledFile>>>,
}

impl BatchWriter for ExchangeWriter {
    fn write(
        &mut self,
        batch: &RecordBatch,
        _is_gone: &dyn Fn() -> bool,
    ) -> Result<u64, ConnectError> {
        self.writer.write(batch)?;
        Ok(0)
    }

    fn finish(self: Box<Self>) -> Result<u64, ConnectError> {
        let files = self.writer.finish()?;
        let bytes = files.iter().map(SpilledFile::bytes).sum();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        *written = files;
        Ok(bytes)
    }
}

/// The half of a blocking exchange that reads, for one subtask.
pub struct SpillSource {
    /// None once it is open.
    job: Option<SpillRead>,
    reader: Option<Reader>,
}

impl Source<RecordBatch> for SpillSource {
    fn open(&mut self, subtask: &Subtask, bell: &Bell) -> Result<(), OperatorError> {
        let job = self.job.take();
        let job = job.ok_or_else(|| OperatorError::new(format!("{subtask} was opened before")))?;
        let stats = ConnectorStats::default();
        self.reader = Some(Reader::start(Box::new(job), stats, bell)?);
        Ok(())
    }

    fn poll(
        &mut self,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<SourceProgress, OperatorError> {
        let reader = self.reader.as_mut();
        let reader = reader.ok_or_else(|| OperatorError::new("this source is not open"))?;
        match reader.try_pop() {
            Ok(Read::Batch { batch, .. }) => out.emit(batch),
            Ok(Read::Watermark(watermark)) => out.watermark(watermark),
            Ok(Read::Note(_)) => {}
            Ok(Read::Failed(error)) => return Err(error.into()),
            Err(PopError::Empty) => return Ok(SourceProgress::Pending(None)),
            Err(PopError::Finished) => return Ok(SourceProgress::End),
            Err(PopError::Abandoned) => {
                return Err(OperatorError::new("the reader of this source is gone"));
            }
        }
        Ok(SourceProgress::Ready)
    }

    fn is_inner(&self) -> bool {
        true
    }
}

/// Reads what several subtasks have spilled, one after the other.
struct SpillRead {
    outputs: Vec<Spilled>,
}

impl ReadJob for SpillRead {
    fn run(&mut self, out: &mut ReadOutput<'_>) -> Result<(), Stop> {
        for (index, spilled) in self.outputs.iter().enumerate() {
            // Rows of those that follow may be earlier: only the watermarks of the last one hold
            // for all.
            let is_last = index + 1 == self.outputs.len();
            let mut marks = spilled.marks.iter().filter(|_| is_last).peekable();
            let mut rows = 0;
            for file in &spilled.files {
                out.reading(file.path());
                let mut reader = file.open()?;
                loop {
                    while let Some(mark) = marks.next_if(|mark| mark.rows <= rows) {
                        out.watermark(mark.watermark)?;
                    }
                    let Some(batch) = reader.next_batch()? else {
                        break;
                    };
                    rows += batch.num_rows() as u64;
                    out.batch(index, batch, None, Position::default())?;
                }
            }
            for mark in marks {
                out.watermark(mark.watermark)?;
            }
        }
        Ok(())
    }
}
