//! A source that makes its rows, whatever they are.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use ringway_shm::Bell;

use crate::connect::saved::{self, place_of};
use crate::connect::{ConnectError, ConnectorStats, Counters, SourceConnector};
use crate::element::{Barrier, EVENT_TIME_MAX, EVENT_TIME_MIN, EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, Source, SourceProgress, StateReader, StateWriter, Subtask};

use super::left::{Left, SavedLeft};
use super::pace::Pace;

/// Makes rows by their numbers. The same number is the same row, whoever makes it.
pub(crate) trait RowMaker: Clone + Send + Sync + 'static {
    /// The connector, as job files name it.
    const CONNECTOR: &'static str;

    /// The schema of the rows: column 0 is the event time.
    fn schema(&self) -> &SchemaRef;

    /// Most rows that are asked for are so far from each other.
    fn set_stride(&mut self, _stride: u64) {}

    /// The rows of these numbers.
    fn batch(&mut self, numbers: &[u64]) -> Result<RecordBatch, OperatorError>;

    /// No row of this number, or of a later one, is earlier.
    fn earliest_from(&mut self, number: u64) -> EventTime;
}

/// How many rows are made, and how fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    /// All subtasks together; none is without end.
    rows: Option<u64>,
    /// Rows per second, all subtasks together; 0 is as fast as possible.
    rate: u64,
    /// Rows of a batch, at most.
    batch_rows: usize,
}

impl Amount {
    /// What the options of these names ask for.
    pub(crate) fn new(
        rows: Option<u64>,
        rate: u64,
        batch_rows: usize,
    ) -> Result<Self, ConnectError> {
        if !(1..=BATCH_ROWS).contains(&batch_rows) {
            let reason = format!("must be from 1 to {BATCH_ROWS}");
            return Err(ConnectError::option("batch_rows", reason));
        }
        Ok(Self {
            rows,
            rate,
            batch_rows,
        })
    }

    /// For people.
    fn describe(&self, connector: &str) -> String {
        let rows = self.rows.map_or_else(
            || "rows without end".to_owned(),
            |rows| format!("{rows} rows"),
        );
        match self.rate {
            0 => format!("{connector}: {rows}, as fast as possible"),
            rate => format!("{connector}: {rows}, {rate} a second"),
        }
    }
}

/// A source of rows that are made.
#[derive(Clone, Debug)]
pub(crate) struct MadeSource<M> {
    maker: M,
    amount: Amount,
    stats: ConnectorStats,
}

impl<M: RowMaker> MadeSource<M> {
    /// A source of what `maker` makes.
    pub(crate) fn new(maker: M, amount: Amount) -> Self {
        let stats = ConnectorStats::default();
        Self {
            maker,
            amount,
            stats,
        }
    }
}

impl<M: RowMaker> SourceConnector for MadeSource<M> {
    fn schema(&self) -> SchemaRef {
        self.maker.schema().clone()
    }

    fn is_bounded(&self) -> bool {
        self.amount.rows.is_some()
    }

    fn describe(&self) -> String {
        self.amount.describe(M::CONNECTOR)
    }

    fn stats(&self) -> ConnectorStats {
        self.stats.clone()
    }

    fn build(&self, subtask: &Subtask) -> Box<dyn Source<RecordBatch>> {
        let (index, parallelism) = place_of(subtask);
        let mut pace = Pace::new(self.amount.rate);
        pace.share(index, parallelism);
        let mut maker = self.maker.clone();
        maker.set_stride(u64::from(parallelism));
        Box::new(MadeSubtask {
            maker,
            place: (index, parallelism),
            left: Left::all(index, parallelism, self.amount.rows),
            batch_rows: self.amount.batch_rows,
            pace,
            made: 0,
            reached: EVENT_TIME_MIN,
            is_restored: false,
            stats: self.stats.clone(),
            delta: Counters::default(),
        })
    }
}

/// One subtask of it.
struct MadeSubtask<M> {
    maker: M,
    place: (u32, u32),
    left: Left,
    batch_rows: usize,
    pace: Pace,
    /// Rows made since it was opened.
    made: u64,
    /// The last watermark emitted.
    reached: EventTime,
    /// Whether it goes on from a checkpoint, and has not said yet how far it had come.
    is_restored: bool,
    stats: ConnectorStats,
    /// What has not been added to the counters yet.
    delta: Counters,
}

impl<M: RowMaker> MadeSubtask<M> {
    /// No row to come is earlier than the first of those that are left.
    fn emit_watermark(&mut self, out: &mut Emitter<'_, RecordBatch>) {
        let reached = self.maker.earliest_from(self.left.frontier());
        let reached = reached.min(EVENT_TIME_MAX - 1);
        if reached > self.reached {
            self.reached = reached;
            out.watermark(Watermark::active(reached));
        }
    }
}

impl<M: RowMaker> Source<RecordBatch> for MadeSubtask<M> {
    fn open(&mut self, _subtask: &Subtask, _bell: &Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    fn poll(
        &mut self,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<SourceProgress, OperatorError> {
        if self.left.is_over() {
            return Ok(SourceProgress::End);
        }
        let due = self.pace.due(out.now()).saturating_sub(self.made);
        if due == 0 {
            return Ok(SourceProgress::Pending(Some(self.pace.next_at(self.made))));
        }
        if out.is_full() {
            return Ok(SourceProgress::Ready);
        }
        if std::mem::take(&mut self.is_restored) && self.left.has_begun() {
            self.emit_watermark(out);
        }
        let rows = usize::try_from(due).unwrap_or(usize::MAX);
        let numbers = self.left.take(rows.min(self.batch_rows));
        let batch = self.maker.batch(&numbers)?;
        self.made += numbers.len() as u64;
        self.delta.rows += numbers.len() as u64;
        self.delta.batches += 1;
        self.stats.try_add(&mut self.delta);
        out.emit(batch);
        self.emit_watermark(out);
        Ok(SourceProgress::Ready)
    }

    fn snapshot(
        &mut self,
        _barrier: Barrier,
        state: &mut dyn StateWriter,
    ) -> Result<(), OperatorError> {
        if self.left.is_over() {
            return Ok(());
        }
        saved::save(self.place, self.left.save(), state)
    }

    fn restore(&mut self, state: &mut dyn StateReader) -> Result<(), OperatorError> {
        self.left.restore(&saved::restore::<SavedLeft>(state)?)?;
        self.is_restored = true;
        Ok(())
    }
}

/// What could not be added while another subtask was counting is added at the end.
impl<M> Drop for MadeSubtask<M> {
    fn drop(&mut self) {
        self.stats.add(&self.delta);
    }
}
