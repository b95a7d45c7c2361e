//! Sums with their counts, one a slot.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, UInt64Array};

use super::spec::AggregateKind;
use super::values::Selection;
use crate::error::OperatorError;

/// The sum of integers and how many they were. 128 bits hold the sum of any number of
/// 64-bit integers that can be counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IntTotal {
    sum: i128,
    count: i64,
}

/// The sum of floats and how many they were.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FloatTotal {
    sum: f64,
    count: i64,
}

impl IntTotal {
    pub(super) fn update<T: Copy + Into<i128>>(
        totals: &mut [Self],
        selection: &Selection<'_>,
        values: &[T],
    ) {
        selection.for_each(|row, slot| {
            let total = &mut totals[slot];
            total.sum += values[row].into();
            total.count += 1;
        });
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }

    /// The sums or means of `slots`.
    pub(super) fn finish(
        totals: &[Self],
        slots: &[u32],
        kind: AggregateKind,
        unsigned: bool,
        name: &str,
    ) -> Result<ArrayRef, OperatorError> {
        let totals = slots.iter().map(|slot| totals[*slot as usize]);
        let some = |total: Self| (total.count > 0).then_some(total);
        if kind == AggregateKind::Mean {
            let mean = |total: Self| total.sum as f64 / total.count as f64;
            let means: Float64Array = totals.map(|total| some(total).map(mean)).collect();
            return Ok(Arc::new(means));
        }
        if unsigned {
            let sums: Result<UInt64Array, OperatorError> = totals
                .map(|total| some(total).map(|total| fit(total.sum, name)).transpose())
                .collect();
            return Ok(Arc::new(sums?));
        }
        let sums: Result<Int64Array, OperatorError> = totals
            .map(|total| some(total).map(|total| fit(total.sum, name)).transpose())
            .collect();
        Ok(Arc::new(sums?))
    }
}

impl FloatTotal {
    pub(super) fn update(totals: &mut [Self], selection: &Selection<'_>, values: &[f64]) {
        selection.for_each(|row, slot| {
            let total = &mut totals[slot];
            total.sum += values[row];
            total.count += 1;
        });
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }

    /// The sums or means of `slots`.
    pub(super) fn finish(totals: &[Self], slots: &[u32], kind: AggregateKind) -> ArrayRef {
        let results: Float64Array = slots
            .iter()
            .map(|slot| totals[*slot as usize])
            .map(|total| match kind {
                _ if total.count == 0 => None,
                AggregateKind::Mean => Some(total.sum / total.count as f64),
                _ => Some(total.sum),
            })
            .collect();
        Arc::new(results)
    }
}

fn fit<T: TryFrom<i128>>(sum: i128, name: &str) -> Result<T, OperatorError> {
    T::try_from(sum).map_err(|_| {
        OperatorError::new(format!(
            "the sum `{name}` is {sum}, which 64 bits do not hold: cast its column to a float, \
             or use the mean"
        ))
    })
}
