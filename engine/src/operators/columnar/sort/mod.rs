//! All rows of a bounded stream in order.

mod key;
mod merge;
mod runs;
mod sorter;

use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use ringway_shm::{Bell, PopError, PushError};

use crate::batch::Payload;
use crate::connect::ArrowCompression;
use crate::connect::side::channel::{SideReceiver, SideSender, side_channel};
use crate::connect::side::thread;
use crate::element::Watermark;
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress, RowCounts, Subtask};
use crate::operators::SpecError;
use crate::operators::schema::require_same_types;

pub use key::SortKey;
pub(super) use key::order_converter;

use sorter::{SortThread, Sorted, Sorter};

/// Batches that may wait on the way to the thread that sorts, and on the way back.
const AHEAD_BATCHES_MAX: usize = 8;

/// Bytes that may wait on either way; the last batch may exceed it.
const AHEAD_BYTES_MAX: usize = 16 << 20;

/// Bytes that are sorted in memory, unless it is said otherwise.
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// Bytes that may be spilled, unless it is said otherwise.
const SPILL_BYTES_MAX: u64 = 16 << 30;

/// What a sort is by, and what it may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortSpec {
    /// The columns to order by, the most significant first; at least one.
    pub order: Vec<SortKey>,
    /// Bytes of rows that are held in memory; when there are more, they are sorted and spilled.
    /// Merging what was spilled takes no more either, or what two rows take and 1 MiB, if that is
    /// more. Default: 256 MiB.
    pub memory_max_bytes: usize,
    /// The folder in which it makes a folder of its own when it spills. Default: the system's
    /// folder for such files.
    pub spill_dir: Option<PathBuf>,
    /// Bytes that it may spill. Merging many runs takes up to twice the rows. Default: 16 GiB.
    pub spill_max_bytes: u64,
    /// How the buffers of a spilled batch are compressed. Default: not at all.
    pub compression: ArrowCompression,
}

/// Gives all rows in order, by the order of Arrow's row format, once its stream has ended. Rows
/// that are equal keep their order.
///
/// Watermarks are held until the rows are given. Sorting and spilling are done on a thread
/// beside the worker.
pub struct Sort {
    input: SchemaRef,
    /// None once the thread runs.
    sorter: Option<Sorter>,
    thread: Option<Thread>,
    /// A batch for which there was no room.
    waiting: Option<RecordBatch>,
    /// Whether the unfinished call waits for the thread.
    is_waiting: bool,
    watermark: Option<Watermark>,
    spilled_bytes: u64,
}

/// The worker's end of the thread that sorts. Dropping it tells the thread to stop, and does not
/// wait until it has removed what was spilled: neither a sort nor a disk may hold up a worker.
struct Thread {
    /// None after the end of the stream.
    sender: Option<SideSender<RecordBatch>>,
    sorted: SideReceiver<Sorted>,
}

impl SortSpec {
    /// A sort by `order`, with the defaults.
    pub const fn new(order: Vec<SortKey>) -> Self {
        Self {
            order,
            memory_max_bytes: MEMORY_BYTES_MAX,
            spill_dir: None,
            spill_max_bytes: SPILL_BYTES_MAX,
            compression: ArrowCompression::None,
        }
    }
}

impl Sort {
    /// An operator that sorts batches of `input`.
    ///
    /// # Errors
    /// When nothing is ordered by, a column does not exist, or it cannot be ordered by.
    pub fn new(input: SchemaRef, spec: SortSpec) -> Result<Self, SpecError> {
        if spec.order.is_empty() {
            return Err(SpecError::NoOrder);
        }
        let converter = order_converter(&input, &spec.order)?;
        Ok(Self {
            input: input.clone(),
            sorter: Some(Sorter::new(input, spec, converter)),
            thread: None,
            waiting: None,
            is_waiting: false,
            watermark: None,
            spilled_bytes: 0,
        })
    }

    fn thread(&mut self) -> Result<&mut Thread, OperatorError> {
        let thread = self.thread.as_mut();
        thread.ok_or_else(|| OperatorError::new("this operator is not open"))
    }

    fn push(&mut self, batch: RecordBatch) -> Result<Progress, OperatorError> {
        let thread = self.thread()?;
        let Some(sender) = &mut thread.sender else {
            return Err(OperatorError::new("a batch came after the end"));
        };
        let bytes = batch.bytes();
        match sender.try_push(batch, bytes) {
            Ok(()) => {
                self.is_waiting = false;
                Ok(Progress::Done)
            }
            Err(PushError::Full(batch)) => {
                self.waiting = Some(batch);
                self.is_waiting = true;
                Ok(Progress::More)
            }
            // It tells why before it goes.
            Err(PushError::Abandoned(_)) => Err(match thread.sorted.try_pop() {
                Ok(Sorted::Failed(error)) => error,
                _ => OperatorError::new("the thread that sorts is gone"),
            }),
        }
    }

    /// Emits what is sorted.
    fn give(&mut self, out: &mut Emitter<'_, RecordBatch>) -> Result<Progress, OperatorError> {
        loop {
            self.is_waiting = false;
            if out.is_full() {
                return Ok(Progress::More);
            }
            match self.thread()?.sorted.try_pop() {
                Ok(Sorted::Batch(batch)) => out.emit(batch),
                Ok(Sorted::Spilled(bytes)) => self.spilled_bytes = bytes,
                Ok(Sorted::Failed(error)) => return Err(error),
                Err(PopError::Empty) => {
                    self.is_waiting = true;
                    return Ok(Progress::More);
                }
                Err(PopError::Finished) => break,
                Err(PopError::Abandoned) => {
                    return Err(OperatorError::new("the thread that sorts is gone"));
                }
            }
        }
        if let Some(watermark) = self.watermark.take() {
            out.watermark(watermark);
        }
        Ok(Progress::Done)
    }
}

impl Operator<RecordBatch, RecordBatch> for Sort {
    fn open(&mut self, subtask: &Subtask, bell: &Bell) -> Result<(), OperatorError> {
        let sorter = self.sorter.take();
        let sorter =
            sorter.ok_or_else(|| OperatorError::new(format!("{subtask} was opened before")))?;
        self.thread = Some(Thread::start(sorter, bell)?);
        Ok(())
    }

    fn process(
        &mut self,
        batch: RecordBatch,
        _out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        require_same_types(&self.input, batch.schema_ref())?;
        self.push(batch)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        _out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        if !watermark.idle {
            self.watermark = Some(watermark);
        }
        Ok(Progress::Done)
    }

    fn on_end(&mut self, out: &mut Emitter<'_, RecordBatch>) -> Result<Progress, OperatorError> {
        if let Some(sender) = self.thread()?.sender.take() {
            sender.finish();
        }
        self.give(out)
    }

    fn resume(&mut self, out: &mut Emitter<'_, RecordBatch>) -> Result<Progress, OperatorError> {
        match self.waiting.take() {
            Some(batch) => self.push(batch),
            None if self.thread()?.sender.is_none() => self.give(out),
            None => Ok(Progress::Done),
        }
    }

    fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    fn counts(&self) -> Option<RowCounts> {
        Some(RowCounts {
            spilled_bytes: self.spilled_bytes,
            ..RowCounts::default()
        })
    }
}

impl Thread {
    fn start(sorter: Sorter, bell: &Bell) -> Result<Self, OperatorError> {
        let side = Bell::thread();
        let channel = (AHEAD_BATCHES_MAX, AHEAD_BYTES_MAX);
        let (sender, batches) = side_channel(channel.0, channel.1, bell.clone(), side.clone());
        let (results, sorted) = side_channel(channel.0, channel.1, side, bell.clone());
        let state = SortThread::new(sorter, batches, results);
        // It ends by itself, at the end or when it sees that this end is gone.
        drop(thread::spawn(
            "ringway-sort",
            state,
            SortThread::run,
            SortThread::panicked,
        )?);
        Ok(Self {
            sender: Some(sender),
            sorted,
        })
    }
}

#[cfg(test)]
mod tests;
