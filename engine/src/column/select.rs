//! Some rows of a batch: by a mask, by position, by the target that each row goes to.

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute;

use super::ColumnError;

/// The rows for which `mask` is true, in order; null is false.
///
/// A mask that keeps every row gives the batch itself, without a copy.
///
/// # Errors
///
/// [`ColumnError::Arrow`] where a column's type can't be filtered: fail the job.
///
/// # Panics
///
/// Where the mask has another length than the batch.
pub fn filter_batch(batch: &RecordBatch, mask: &BooleanArray) -> Result<RecordBatch, ColumnError> {
    assert_eq!(mask.len(), batch.num_rows(), "a mask has one value a row");
    if mask.true_count() == mask.len() {
        return Ok(batch.clone());
    }
    Ok(compute::filter_record_batch(batch, mask)?)
}

/// The rows at `positions`, in that order; a row may come more than once.
///
/// # Errors
///
/// [`ColumnError::Arrow`] where text that is taken often exceeds what a column holds: take
/// fewer rows at once.
///
/// # Panics
///
/// Where a position is no row of the batch.
pub fn take_rows(batch: &RecordBatch, positions: &[u32]) -> Result<RecordBatch, ColumnError> {
    let rows = batch.num_rows();
    let last = positions.iter().copied().max();
    assert!(
        last.is_none_or(|last| (last as usize) < rows),
        "position {last:?} of a batch of {rows} rows"
    );
    take(batch, positions.to_vec().into())
}

/// The rows of each of `targets_len` targets, where row `i` goes to `targets[i]`; none for a
/// target without a row. Rows keep their order.
///
/// Where all rows go to one target it gets the batch itself, without a copy.
///
/// # Errors
///
/// As [`take_rows`].
///
/// # Panics
///
/// Where `targets` has another length than the batch, or one of them is not below
/// `targets_len`.
pub fn split_by_target(
    batch: &RecordBatch,
    targets: &[u32],
    targets_len: usize,
) -> Result<Vec<Option<RecordBatch>>, ColumnError> {
    assert_eq!(targets.len(), batch.num_rows(), "a row has one target");
    // `BATCH_ROWS_MAX` is far below what positions hold.
    assert!(u32::try_from(targets.len()).is_ok(), "fewer than 2^32 rows");
    let mut parts = vec![None; targets_len];
    let Some(&first) = targets.first() else {
        return Ok(parts);
    };
    if targets.iter().all(|&target| target == first) {
        parts[first as usize] = Some(batch.clone());
        return Ok(parts);
    }
    let positions = match targets_len {
        2 => positions_of_few::<2>(targets),
        3 => positions_of_few::<3>(targets),
        4 => positions_of_few::<4>(targets),
        _ => positions_of_many(targets, targets_len),
    };
    for (part, positions) in parts.iter_mut().zip(positions) {
        if !positions.is_empty() {
            *part = Some(take(batch, positions)?);
        }
    }
    Ok(parts)
}

/// The positions of the rows of each of few targets, in order: each row is written at the end of
/// all, which moves on only where the row belongs there, so there is no branch to be mistaken.
fn positions_of_few<const TARGETS: usize>(targets: &[u32]) -> Vec<ScalarBuffer<u32>> {
    let mut positions = [const { Vec::new() }; TARGETS];
    for positions in &mut positions {
        positions.resize(targets.len() + 1, 0);
    }
    let mut ends = [0_usize; TARGETS];
    // Slices and ends stay in registers.
    let places = positions.each_mut().map(|positions| &mut positions[..]);
    for (row, &target) in (0..).zip(targets) {
        assert!((target as usize) < TARGETS, "target {target} of {TARGETS}");
        for at in 0..TARGETS {
            places[at][ends[at]] = row;
            ends[at] += usize::from(target as usize == at);
        }
    }
    let parts = positions.into_iter().zip(ends);
    let parts = parts.map(|(mut positions, end)| {
        positions.truncate(end);
        positions.into()
    });
    parts.collect()
}

/// The same by a counting sort.
fn positions_of_many(targets: &[u32], targets_len: usize) -> Vec<ScalarBuffer<u32>> {
    let mut ends = vec![0_usize; targets_len];
    for &target in targets {
        ends[target as usize] += 1;
    }
    let mut before = 0;
    for end in &mut ends {
        before += std::mem::replace(end, before);
    }
    // Each entry starts as the beginning of its target, and is its end once the rows are in.
    let mut positions = vec![0; targets.len()];
    for (row, &target) in (0..).zip(targets) {
        let place = &mut ends[target as usize];
        positions[*place] = row;
        *place += 1;
    }
    let positions = ScalarBuffer::from(positions);
    let mut start = 0;
    let parts = ends.into_iter().map(|end| {
        let start = std::mem::replace(&mut start, end);
        positions.slice(start, end - start)
    });
    parts.collect()
}

fn take(batch: &RecordBatch, positions: ScalarBuffer<u32>) -> Result<RecordBatch, ColumnError> {
    // The batch says how many rows it has because its columns can't where there are none.
    let count = RecordBatchOptions::new().with_row_count(Some(positions.len()));
    let positions = UInt32Array::new(positions, None);
    let columns = batch.columns().iter();
    let columns: Vec<ArrayRef> = columns
        .map(|column| compute::take(column, &positions, None))
        .collect::<Result<_, _>>()?;
    Ok(RecordBatch::try_new_with_options(
        batch.schema(),
        columns,
        &count,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};
    use proptest::prelude::*;

    use crate::batcher::properties::holds;

    /// Two columns of one name, so that a lookup by name would show, and metadata.
    fn batch(rows: i64) -> RecordBatch {
        let metadata = HashMap::from([("origin".to_string(), "t1".to_string())]);
        let field = |data_type| Field::new("v", data_type, true).with_metadata(metadata.clone());
        let fields = vec![field(DataType::Int64), field(DataType::Utf8)];
        let schema = Schema::new_with_metadata(fields, metadata.clone());
        let numbers = Int64Array::from_iter((0..rows).map(|row| (row % 5 != 4).then_some(row)));
        let texts = StringArray::from_iter((0..rows).map(|row| Some(format!("t{row}"))));
        let columns: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(texts)];
        RecordBatch::try_new(Arc::new(schema), columns).unwrap()
    }

    fn without_columns(rows: usize) -> RecordBatch {
        let count = RecordBatchOptions::new().with_row_count(Some(rows));
        let metadata = HashMap::from([("origin".to_string(), "t1".to_string())]);
        let schema = Schema::empty().with_metadata(metadata);
        RecordBatch::try_new_with_options(Arc::new(schema), vec![], &count).unwrap()
    }

    fn one_by_one(batch: &RecordBatch, rows: impl Iterator<Item = usize>) -> RecordBatch {
        let parts: Vec<_> = rows.map(|row| batch.slice(row, 1)).collect();
        compute::concat_batches(&batch.schema(), &parts).unwrap()
    }

    #[test]
    fn a_batch_without_columns_keeps_its_row_count() {
        let five = without_columns(5);
        let mask = BooleanArray::from(vec![Some(true), None, Some(false), Some(true), None]);
        let filtered = filter_batch(&five, &mask).unwrap();
        assert_eq!(filtered.num_rows(), 2);
        let taken = take_rows(&five, &[0, 0, 4]).unwrap();
        assert_eq!(taken.num_rows(), 3);
        let parts = split_by_target(&five, &[1, 0, 1, 1, 3], 4).unwrap();
        let rows = parts
            .iter()
            .map(|part| part.as_ref().map(RecordBatch::num_rows));
        assert_eq!(rows.collect::<Vec<_>>(), [Some(1), Some(3), None, Some(1)]);
        for kept in [&filtered, &taken, parts[1].as_ref().unwrap()] {
            assert_eq!(kept.schema(), five.schema());
        }
    }

    #[test]
    fn duplicate_names_stay_apart_and_metadata_stays() {
        let batch = batch(4);
        let mask = BooleanArray::from(vec![false, true, true, false]);
        let filtered = filter_batch(&batch, &mask).unwrap();
        assert_eq!(filtered, one_by_one(&batch, 1..3));
        assert_eq!(filtered.schema(), batch.schema());
        let taken = take_rows(&batch, &[3, 1, 1]).unwrap();
        assert_eq!(taken, one_by_one(&batch, [3, 1, 1].into_iter()));
        assert_eq!(taken.schema(), batch.schema());
    }

    #[test]
    fn what_stays_whole_is_not_copied() {
        let batch = batch(9);
        let everything = filter_batch(&batch, &BooleanArray::from(vec![true; 9])).unwrap();
        assert!(Arc::ptr_eq(everything.column(1), batch.column(1)));
        let mut parts = split_by_target(&batch, &[2; 9], 3).unwrap();
        let whole = parts.pop().flatten().unwrap();
        assert!(Arc::ptr_eq(whole.column(1), batch.column(1)));
        assert_eq!(parts, [None, None]);
    }

    #[test]
    fn an_empty_batch_goes_to_no_target() {
        assert_eq!(split_by_target(&batch(0), &[], 2).unwrap(), [None, None]);
        assert_eq!(take_rows(&batch(3), &[]).unwrap().num_rows(), 0);
    }

    #[test]
    #[should_panic(expected = "position Some(3) of a batch of 3 rows")]
    fn a_position_beyond_the_rows_is_a_programmer_error() {
        let _ = take_rows(&without_columns(3), &[0, 3]);
    }

    #[test]
    fn a_split_agrees_with_one_row_at_a_time() {
        let targets = (1..6_u32).prop_flat_map(|targets_len| {
            let targets = prop::collection::vec(0..targets_len, 0..70);
            (Just(targets_len as usize), targets)
        });
        holds(targets, |(targets_len, targets)| {
            let batch = batch(targets.len() as i64);
            let parts = split_by_target(&batch, &targets, targets_len).unwrap();
            prop_assert_eq!(parts.len(), targets_len);
            for (target, part) in parts.into_iter().enumerate() {
                let rows = targets.iter().enumerate();
                let rows: Vec<usize> = rows
                    .filter(|&(_, &to)| to as usize == target)
                    .map(|(row, _)| row)
                    .collect();
                prop_assert_eq!(part.is_some(), !rows.is_empty());
                if let Some(part) = part {
                    prop_assert_eq!(part, one_by_one(&batch, rows.into_iter()));
                }
            }
            Ok(())
        });
    }
}
