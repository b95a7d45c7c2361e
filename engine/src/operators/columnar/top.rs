//! The foremost rows of each key.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use arrow::row::RowConverter;

mod bar;
mod rows;

use crate::column::event_times;
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, RowCounts, SideTag};
use crate::operators::SpecError;
use crate::operators::aggregate::KeyInterner;
use crate::operators::columnar::sort::{SortKey, order_converter};
use crate::operators::gather::{Gather, Gathered};
use crate::operators::late::set_late_aside;
use crate::operators::schema::{
    int64_field, renamed, require_event_time, require_numbered_rows, require_same_types,
    window_columns, window_fields,
};
use crate::operators::top::{Top, TopState};
use crate::operators::window::{Window, WindowAssigner};

use bar::Bar;
use rows::{PickedRows, RowOfBatch};

/// Rows that kept rows may hold on to beyond four times their own number, before they are
/// copied out of the batches that they came in.
const HELD_ROWS_MAX: usize = 65_536;

/// What a [`TopN`] does.
#[derive(Clone, Debug)]
pub struct TopNSpec {
    /// How many rows of each key.
    pub rows_max: usize,
    /// The positions of the columns that are the key; without any, all rows have one key.
    pub key_columns: Vec<usize>,
    /// The positions of the columns to order by, the most significant first, and whether the
    /// greatest comes first. Nulls come last.
    pub order: Vec<(usize, bool)>,
    /// The rows of each window, when it is complete. Without it, of all rows so far.
    pub windows: Option<WindowAssigner>,
    /// Where rows go that come too late for their windows, or have no event time. Without it
    /// they are counted only.
    pub late: Option<SideTag<RecordBatch>>,
}

/// The first rows of each key in an order; of equal ones those that came first.
///
/// Without windows, each batch gives the first rows so far of every key of which it changed
/// them, all of them anew. With windows, each gives its rows when it is complete.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::datatypes::{DataType, Field, Schema};
/// use ringway::operators::columnar::{TopN, TopNSpec};
/// use ringway::operators::window::WindowAssigner;
///
/// let bids = Arc::new(Schema::new(vec![
///     Field::new("event_time", DataType::Int64, true),
///     Field::new("auction", DataType::Int64, false),
///     Field::new("price", DataType::Int64, false),
/// ]));
/// let spec = TopNSpec {
///     rows_max: 3,
///     key_columns: vec![1],
///     order: vec![(2, true)],
///     windows: Some(WindowAssigner::tumbling(3_600_000, 0)?),
///     late: None,
/// };
/// assert_eq!(spec.output_schema(&bids)?.field(6).name(), "rank");
/// let highest = TopN::new(bids, spec)?;
/// # let _ = highest;
/// # Ok::<(), ringway::operators::SpecError>(())
/// ```
pub struct TopN {
    input: SchemaRef,
    spec: TopNSpec,
    interner: KeyInterner,
    converter: RowConverter,
    state: TopState<u32, Box<[u8]>, RowOfBatch>,
    /// Leaves rows out that cannot be among the first, where that is simple to tell.
    bar: Option<Bar>,
    staged: StagedRows,
    current: Option<(Top<u32, RowOfBatch>, usize)>,
    advancing: Option<Watermark>,
    /// Rows of all batches that kept rows are in, as of when they came.
    held_rows: usize,
    counts: RowCounts,
}

/// Results that are to be a batch.
struct StagedRows {
    schema: SchemaRef,
    rows: PickedRows,
    ranks: Vec<i64>,
    windows: Vec<Window>,
}

impl TopNSpec {
    /// The schema of the results over batches of `input`: its columns and `rank`, from 1. With
    /// windows the event time (the last of the window), `window_start` and `window_end` come
    /// before them.
    ///
    /// # Errors
    /// When `input` has no event time, or a column does not exist or cannot be a key or be
    /// ordered.
    pub fn output_schema(&self, input: &SchemaRef) -> Result<SchemaRef, SpecError> {
        require_event_time(input)?;
        KeyInterner::new(input, &self.key_columns)?;
        self.converter(input)?;
        let mut fields: Vec<FieldRef> = Vec::new();
        if self.windows.is_some() {
            fields.extend(window_fields());
        }
        fields.extend(input.fields().iter().cloned());
        fields.push(int64_field("rank", false));
        let metadata = input.metadata().clone();
        Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
    }

    fn converter(&self, input: &SchemaRef) -> Result<RowConverter, SpecError> {
        let keys = self.order.iter().map(|&(column, descending)| SortKey {
            column,
            descending,
            nulls_first: false,
        });
        order_converter(input, &keys.collect::<Vec<_>>())
    }
}

impl TopN {
    /// An operator for batches of `input`.
    ///
    /// # Errors
    /// As for [`TopNSpec::output_schema`].
    pub fn new(input: SchemaRef, spec: TopNSpec) -> Result<Self, SpecError> {
        let staged = StagedRows {
            schema: spec.output_schema(&input)?,
            rows: PickedRows::default(),
            ranks: Vec::new(),
            windows: Vec::new(),
        };
        Ok(Self {
            interner: KeyInterner::new(&input, &spec.key_columns)?,
            converter: spec.converter(&input)?,
            state: TopState::new(spec.rows_max, spec.windows),
            bar: Bar::new(&input, &spec),
            input,
            spec,
            staged,
            current: None,
            advancing: None,
            held_rows: 0,
            counts: RowCounts::default(),
        })
    }

    /// The same with every row that is equal to the last one, so that there may be more than
    /// `rows_max`; equal rows have the same rank.
    #[must_use]
    pub fn with_ties(mut self) -> Self {
        self.state = self.state.with_ties(|one, other| one == other);
        self.bar = self.bar.map(Bar::with_ties);
        self
    }

    /// The same operator, whose columns go by other names: two of them may have one otherwise.
    ///
    /// # Panics
    /// When there are not as many names as columns.
    #[must_use]
    pub fn renamed(mut self, names: &[String]) -> Self {
        self.staged.schema = renamed(&self.staged.schema, names);
        self
    }

    /// The schema of the results.
    pub fn output_schema(&self) -> &SchemaRef {
        &self.staged.schema
    }

    fn add(&mut self, batch: RecordBatch) -> Result<(), OperatorError> {
        let columns: Vec<ArrayRef> = self
            .spec
            .order
            .iter()
            .map(|(column, _)| Arc::clone(batch.column(*column)))
            .collect();
        // Without a column to order by, all rows are equal.
        let order = match columns.is_empty() {
            true => None,
            false => Some(self.converter.convert_columns(&columns)?),
        };
        let mut keys = Vec::new();
        self.interner.intern(&batch, &mut keys)?;
        keys.iter().for_each(|key| self.interner.hold(*key));
        let times = event_times(&batch)?.clone();
        let batch = Arc::new(batch);
        let mut is_kept = false;
        for (row, key) in keys.iter().enumerate() {
            let by = order.as_ref().map(|order| order.row(row));
            let by = by.as_ref().map_or(&[][..], |by| by.as_ref());
            let make = || {
                let row = RowOfBatch {
                    batch: Arc::clone(&batch),
                    row: row as u32,
                };
                (Box::from(by), row)
            };
            let interner = &mut self.interner;
            let time = times.is_valid(row).then(|| times.value(row));
            let mut kept = |key: &u32| interner.hold(*key);
            is_kept |= self
                .state
                .offer(key, time, |other| (**other).cmp(by), make, &mut kept);
        }
        // Without windows a key stays for ever.
        if self.spec.windows.is_some() {
            keys.iter().for_each(|key| self.interner.release(*key));
        }
        if is_kept {
            self.held_rows += batch.num_rows();
        }
        Ok(())
    }

    /// Copies kept rows out of the batches that they came in, when those hold many more.
    fn compact(&mut self) -> Result<(), OperatorError> {
        if self.held_rows <= HELD_ROWS_MAX {
            return Ok(());
        }
        let mut rows: Vec<&mut RowOfBatch> = self.state.rows_mut().collect();
        if self.held_rows <= HELD_ROWS_MAX + 4 * rows.len() {
            return Ok(());
        }
        self.held_rows = rows.len();
        for chunk in rows.chunks_mut(BATCH_ROWS) {
            let mut picked = PickedRows::default();
            chunk.iter().for_each(|row| picked.push(row));
            let columns = picked.take(self.input.fields().len())?;
            let batch = Arc::new(RecordBatch::try_new(Arc::clone(&self.input), columns)?);
            for (at, row) in chunk.iter_mut().enumerate() {
                **row = RowOfBatch {
                    batch: Arc::clone(&batch),
                    row: at as u32,
                };
            }
        }
        Ok(())
    }
}

impl StagedRows {
    /// The batch that was staged; nothing is staged after it.
    fn build(&mut self, columns_of_input: usize) -> Result<RecordBatch, OperatorError> {
        let windows = std::mem::take(&mut self.windows);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        if !windows.is_empty() {
            columns.extend(window_columns(&windows));
        }
        columns.extend(self.rows.take(columns_of_input)?);
        columns.push(Arc::new(Int64Array::from(std::mem::take(&mut self.ranks))));
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl Gather for TopN {
    type In = RecordBatch;
    type Out = RecordBatch;

    fn take_in(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<(), OperatorError> {
        require_same_types(&self.input, batch.schema_ref())?;
        require_numbered_rows(batch.num_rows())?;
        let is_late = |time| self.state.is_late(time);
        let candidates = match &mut self.bar {
            Some(bar) => bar.candidates(&batch, |time| is_late(Some(time)))?,
            None => None,
        };
        let batch = match candidates {
            Some(candidates) => candidates,
            None => set_late_aside(batch, is_late, self.spec.late, &mut self.counts, out)?,
        };
        self.add(batch)
    }

    fn advance(&mut self, watermark: EventTime) {
        self.state.advance(watermark);
        if let Some(bar) = &mut self.bar {
            bar.advance(watermark);
        }
    }

    fn advancing(&mut self) -> &mut Option<Watermark> {
        &mut self.advancing
    }

    fn fill(&mut self) -> Result<Gathered, OperatorError> {
        while self.staged.ranks.len() < BATCH_ROWS {
            let (top, at) = match self.current.take() {
                Some(current) => current,
                None => {
                    let Some(top) = self.state.next_due() else {
                        return Ok(Gathered::All);
                    };
                    if top.window.is_some() {
                        self.interner.release(top.key);
                    }
                    (top, 0)
                }
            };
            let Some((rank, row)) = top.rows.get(at) else {
                continue;
            };
            self.staged.rows.push(row);
            self.staged.ranks.push(*rank as i64);
            self.staged.windows.extend(top.window);
            self.current = Some((top, at + 1));
        }
        Ok(Gathered::Batch)
    }

    fn is_empty(&self) -> bool {
        self.staged.ranks.is_empty()
    }

    fn build(&mut self) -> Result<RecordBatch, OperatorError> {
        self.staged.build(self.input.fields().len())
    }

    fn free_some(&mut self) -> Result<bool, OperatorError> {
        self.compact()?;
        Ok(true)
    }

    fn row_counts(&self) -> Option<RowCounts> {
        Some(self.counts)
    }
}

#[cfg(test)]
mod tests;
