//! A sink that writes on a thread beside the worker.

use std::thread::JoinHandle;

use arrow::array::RecordBatch;
use ringway_shm::{Bell, PopError, PushError};

use crate::batch::Payload;
use crate::clock::ProcessingTime;
use crate::error::OperatorError;
use crate::operator::{Progress, Sink, Subtask};

use crate::connect::side::channel::{SideReceiver, SideSender, side_channel};
use crate::connect::{ConnectError, ConnectorStats, Counters};

use super::thread;

/// Batches that a worker may be ahead of a writer.
const AHEAD_BATCHES_MAX: usize = 8;

/// Bytes that a worker may be ahead of a writer; the last batch may exceed it.
pub(crate) const AHEAD_BYTES_MAX: usize = 16 << 20;

/// Writes the batches of one subtask, on the side thread. It may block.
///
/// Dropping it without `finish` means that the stream did not end: nothing that looks
/// complete may be left behind.
pub trait BatchWriter {
    /// Writes one batch and returns how many bytes that made. `is_gone` tells whether the sink
    /// was dropped meanwhile: what waits for someone else then gives up.
    ///
    /// # Errors
    /// When it cannot be written; the error says where to.
    fn write(
        &mut self,
        batch: &RecordBatch,
        is_gone: &dyn Fn() -> bool,
    ) -> Result<u64, ConnectError>;

    /// The stream has ended: makes everything visible, and returns how many bytes that made.
    ///
    /// # Errors
    /// As for `write`.
    fn finish(self: Box<Self>) -> Result<u64, ConnectError>;
}

/// Makes a writer, on the side thread.
pub type StartWriter = Box<dyn FnOnce() -> Result<Box<dyn BatchWriter>, ConnectError> + Send>;

/// A sink that hands its batches to a writer on a thread of its own.
pub struct WriterSink {
    /// What it writes to, for messages.
    target: String,
    start: Option<StartWriter>,
    stats: ConnectorStats,
    writer: Option<Writer>,
    /// A batch for which there was no room.
    waiting: Option<RecordBatch>,
}

impl WriterSink {
    /// A sink that writes to `target` with the writer that `start` makes when the job starts.
    pub fn new(target: String, start: StartWriter, stats: ConnectorStats) -> Self {
        Self {
            target,
            start: Some(start),
            stats,
            writer: None,
            waiting: None,
        }
    }

    fn writer(&mut self) -> Result<&mut Writer, OperatorError> {
        self.writer
            .as_mut()
            .ok_or_else(|| OperatorError::new("this sink is not open"))
    }

    fn push(&mut self, batch: RecordBatch) -> Result<Progress, OperatorError> {
        let writer = self.writer()?;
        if let Some(Err(error)) = writer.outcome() {
            return Err(error);
        }
        let Some(sender) = &mut writer.sender else {
            return Err(OperatorError::new("a batch came after the end"));
        };
        let bytes = batch.bytes();
        match sender.try_push(batch, bytes) {
            Ok(()) => Ok(Progress::Done),
            Err(PushError::Full(batch)) => {
                self.waiting = Some(batch);
                Ok(Progress::More)
            }
            // It tells why before it goes.
            Err(PushError::Abandoned(_)) => Err(match writer.outcome() {
                Some(Err(error)) => error,
                _ => OperatorError::new("the writer of this sink is gone"),
            }),
        }
    }
}

impl Sink<RecordBatch> for WriterSink {
    fn open(&mut self, subtask: &Subtask, bell: &Bell) -> Result<(), OperatorError> {
        let start = self
            .start
            .take()
            .ok_or_else(|| OperatorError::new(format!("{subtask} was opened before")))?;
        let target = self.target.clone();
        self.writer = Some(Writer::start(target, start, self.stats.clone(), bell)?);
        Ok(())
    }

    fn write(
        &mut self,
        batch: RecordBatch,
        _now: ProcessingTime,
    ) -> Result<Progress, OperatorError> {
        assert!(
            self.waiting.is_none(),
            "a sink is resumed before it is given more"
        );
        self.push(batch)
    }

    fn resume(&mut self, now: ProcessingTime) -> Result<Progress, OperatorError> {
        match self.waiting.take() {
            Some(batch) => self.push(batch),
            None if self.writer()?.sender.is_none() => self.on_end(now),
            None => Ok(Progress::Done),
        }
    }

    fn on_end(&mut self, _now: ProcessingTime) -> Result<Progress, OperatorError> {
        assert!(self.waiting.is_none(), "a sink is resumed before it ends");
        let writer = self.writer()?;
        if let Some(sender) = writer.sender.take() {
            sender.finish();
        }
        match writer.outcome() {
            None => Ok(Progress::More),
            Some(outcome) => outcome.map(|()| Progress::Done),
        }
    }
}

/// The worker's end of a side thread that writes. Dropping it stops and joins the thread.
struct Writer {
    /// None after the end of the stream.
    sender: Option<SideSender<RecordBatch>>,
    result: SideReceiver<Result<(), ConnectError>>,
    is_finished: bool,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    fn start(
        target: String,
        start: StartWriter,
        stats: ConnectorStats,
        bell: &Bell,
    ) -> Result<Self, ConnectError> {
        let side = Bell::thread();
        let (sender, batches) = side_channel(
            AHEAD_BATCHES_MAX,
            AHEAD_BYTES_MAX,
            bell.clone(),
            side.clone(),
        );
        let (told, result) = side_channel(1, usize::MAX, side, bell.clone());
        let state = WriterThread {
            target,
            start: Some(start),
            stats,
            batches,
            told,
        };
        let thread = thread::spawn(
            "ringway-write",
            state,
            WriterThread::run,
            WriterThread::panicked,
        )?;
        Ok(Self {
            sender: Some(sender),
            result,
            is_finished: false,
            thread: Some(thread),
        })
    }

    /// How the writer ended, once it has.
    fn outcome(&mut self) -> Option<Result<(), OperatorError>> {
        if self.is_finished {
            return Some(Ok(()));
        }
        match self.result.try_pop() {
            Ok(Ok(())) => {
                self.is_finished = true;
                Some(Ok(()))
            }
            Ok(Err(error)) => Some(Err(error.into())),
            Err(PopError::Empty) => None,
            Err(PopError::Finished | PopError::Abandoned) => Some(Err(OperatorError::new(
                "the writer of this sink has failed",
            ))),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.result.close();
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // A panic was caught inside, and told.
            let _ = thread.join();
        }
    }
}

/// What the side thread owns.
struct WriterThread {
    target: String,
    start: Option<StartWriter>,
    stats: ConnectorStats,
    batches: SideReceiver<RecordBatch>,
    told: SideSender<Result<(), ConnectError>>,
}

impl WriterThread {
    fn run(&mut self) {
        if let Some(result) = self.write_all().transpose() {
            self.tell(result);
        }
    }

    fn panicked(&mut self, reason: String) {
        let what = self.target.clone();
        self.tell(Err(ConnectError::Panicked { what, reason }));
    }

    /// Writes until the stream ends; none when the sink is dropped before.
    fn write_all(&mut self) -> Result<Option<()>, ConnectError> {
        let Some(start) = self.start.take() else {
            return Ok(None);
        };
        let mut writer = start()?;
        loop {
            let batch = match self.batches.pop() {
                Ok(batch) => batch,
                Err(PopError::Finished) => break,
                Err(PopError::Empty | PopError::Abandoned) => return Ok(None),
            };
            let bytes = writer.write(&batch, &|| self.told.is_abandoned())?;
            self.stats.add(&Counters {
                rows: batch.num_rows() as u64,
                batches: 1,
                bytes,
                ..Counters::default()
            });
        }
        let bytes = writer.finish()?;
        self.stats.add(&Counters {
            bytes,
            ..Counters::default()
        });
        Ok(Some(()))
    }

    /// Tells how it ended, before the worker can see that nobody takes batches any more.
    fn tell(&mut self, result: Result<(), ConnectError>) {
        // Where the sink is gone nobody wants to know.
        let _ = self.told.try_push(result, 0);
    }
}
