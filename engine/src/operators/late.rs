//! Rows that come too late are counted, and go to a side output where there is one.

use arrow::array::{Array, BooleanArray, RecordBatch};

use crate::batch::{Payload, Row, Rows};
use crate::column::{event_times, filter_batch};
use crate::element::EventTime;
use crate::error::OperatorError;
use crate::operator::{Emitter, RowCounts, SideTag};

/// The rows of `batch` that are not late; the others go to `to`.
///
/// `is_late` says it of an event time, or of none; of two times not of the later one alone.
pub(super) fn set_late_aside<Out: Payload>(
    batch: RecordBatch,
    is_late: impl Fn(Option<EventTime>) -> bool,
    to: Option<SideTag<RecordBatch>>,
    counts: &mut RowCounts,
    out: &mut Emitter<'_, Out>,
) -> Result<RecordBatch, OperatorError> {
    let times = event_times(&batch)?;
    let has_untimed = times.null_count() > 0 && is_late(None);
    let earliest = arrow::compute::min(times);
    if !has_untimed && earliest.is_none_or(|time| !is_late(Some(time))) {
        return Ok(batch);
    }
    let taken: BooleanArray = times.iter().map(|time| Some(!is_late(time))).collect();
    let untimed = if has_untimed { times.null_count() } else { 0 };
    counts.untimed_rows += untimed as u64;
    counts.late_rows += (taken.false_count() - untimed) as u64;
    if let Some(tag) = to {
        let others = BooleanArray::new(!taken.values(), None);
        out.emit_side(tag, filter_batch(&batch, &others)?);
    }
    Ok(filter_batch(&batch, &taken)?)
}

/// The rows that are not late; the others go to `to`.
pub(super) fn set_late_rows_aside<T, Out>(
    rows: Rows<T>,
    is_late: impl Fn(Option<EventTime>) -> bool,
    to: Option<SideTag<Rows<T>>>,
    counts: &mut RowCounts,
    out: &mut Emitter<'_, Out>,
) -> Rows<T>
where
    T: Clone + Send + 'static,
    Out: Payload,
{
    let late = |row: &Row<T>| is_late(row.event_time);
    if !rows.iter().any(late) {
        return rows;
    }
    let (late, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(late);
    emit_late_rows(late.into(), to, counts, out);
    rows.into()
}

/// Counts rows that are late, and sends them to `to`.
pub(super) fn emit_late_rows<T, Out>(
    late: Rows<T>,
    to: Option<SideTag<Rows<T>>>,
    counts: &mut RowCounts,
    out: &mut Emitter<'_, Out>,
) where
    T: Clone + Send + 'static,
    Out: Payload,
{
    let untimed = late.iter().filter(|row| row.event_time.is_none()).count();
    counts.untimed_rows += untimed as u64;
    counts.late_rows += (late.len() - untimed) as u64;
    if let Some(tag) = to {
        out.emit_side(tag, late);
    }
}
