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

#[cfg(test)]
mod tests {
    use crate::batch::{Either, Row};
    use crate::element::Watermark;
    use crate::operator::Operator;
    use crate::operators::AggregateSpec;
    use crate::operators::columnar::{Deduplicate, DeduplicateSpec, TopN, TopNSpec};
    use crate::operators::join::{IntervalBounds, Join, JoinKind, JoinSpec, JoinTime};
    use crate::operators::testing::{Harness, batch_of_values};
    use crate::operators::window::{
        EarlyResults, SessionAggregate, SessionSpec, WindowAggregate, WindowAssigner, WindowSpec,
    };

    use super::*;

    type Side = Either<RecordBatch, RecordBatch>;

    const WATERMARK: i64 = 59;

    /// The least time of rows that are not late when event time has come to [`WATERMARK`]. A late
    /// row must be counted as one, and another as none.
    fn first_in_time<In: Payload, Op: Operator<In, RecordBatch>>(
        make: impl Fn() -> Op,
        input: impl Fn(RecordBatch) -> In,
    ) -> i64 {
        let late_rows = |time| {
            let mut harness: Harness<_, RecordBatch> = Harness::new(make(), 1);
            harness.watermark::<In>(Watermark::active(WATERMARK));
            harness.push(input(batch_of_values(&[Row::at(time, (1, 1))])));
            let counts = harness.counts();
            assert_eq!(counts.untimed_rows, 0);
            counts.late_rows
        };
        let late: Vec<u64> = (30..70).map(late_rows).collect();
        let first = late
            .iter()
            .position(|rows| *rows == 0)
            .expect("one in time");
        assert!(late[..first].iter().all(|rows| *rows == 1));
        assert!(late[first..].iter().all(|rows| *rows == 0));
        30 + first as i64
    }

    fn schema() -> arrow::datatypes::SchemaRef {
        batch_of_values(&[]).schema()
    }

    fn tens() -> WindowAssigner {
        WindowAssigner::tumbling(10, 0).expect("windows")
    }

    fn window(allowed_lateness_ms: u64) -> WindowAggregate {
        let spec = WindowSpec {
            assigner: tens(),
            key_columns: vec![1],
            aggregates: vec![AggregateSpec::count("count")],
            allowed_lateness_ms,
            early: EarlyResults::default(),
            late: None,
        };
        WindowAggregate::new(schema(), spec).expect("a fitting spec")
    }

    fn session(allowed_lateness_ms: u64) -> SessionAggregate {
        let spec = SessionSpec {
            gap_ms: 10,
            key_columns: vec![1],
            aggregates: vec![AggregateSpec::count("count")],
            allowed_lateness_ms,
            late: None,
        };
        SessionAggregate::new(schema(), spec).expect("a fitting spec")
    }

    fn join(time: JoinTime) -> Join {
        let spec = JoinSpec {
            kind: JoinKind::Left,
            time,
            left_keys: vec![1],
            right_keys: vec![1],
            left_late: None,
            right_late: None,
        };
        Join::new(schema(), schema(), spec).expect("a fitting spec")
    }

    fn top(windows: Option<WindowAssigner>) -> TopN {
        let spec = TopNSpec {
            rows_max: 1,
            key_columns: vec![1],
            order: vec![(2, true)],
            windows,
            late: None,
        };
        TopN::new(schema(), spec).expect("a fitting spec")
    }

    fn deduplicate(ttl_ms: Option<u64>) -> Deduplicate {
        let spec = DeduplicateSpec {
            key_columns: vec![1],
            ttl_ms,
            late: None,
        };
        Deduplicate::new(schema(), spec).expect("a fitting spec")
    }

    #[test]
    fn a_row_is_late_where_the_table_of_the_documentation_says_so() {
        let same = |batch| batch;
        assert_eq!(
            first_in_time(|| window(0), same),
            60,
            "its window is complete"
        );
        assert_eq!(
            first_in_time(|| window(10), same),
            50,
            "its lateness is past"
        );
        assert_eq!(
            first_in_time(|| session(0), same),
            51,
            "its session is complete"
        );
        assert_eq!(
            first_in_time(|| session(10), same),
            41,
            "its lateness is past"
        );
        for side in [Side::Left, Side::Right] {
            let bounds = IntervalBounds::new(-100, 100).expect("in order");
            let interval = || join(JoinTime::Interval(bounds));
            assert_eq!(
                first_in_time(interval, side),
                WATERMARK,
                "behind the watermark"
            );
            let windows = || join(JoinTime::SameWindow(tens()));
            assert_eq!(first_in_time(windows, side), 60, "its window is complete");
        }
        assert_eq!(
            first_in_time(|| top(Some(tens())), same),
            60,
            "its window is complete"
        );
        assert_eq!(first_in_time(|| top(None), same), 30, "never");
        let deduplicated = first_in_time(|| deduplicate(Some(5)), same);
        assert_eq!(deduplicated, WATERMARK, "behind the watermark");
        assert_eq!(first_in_time(|| deduplicate(None), same), 30, "never");
    }
}
