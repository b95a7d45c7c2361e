//! The elements that go over an edge.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use ringway::batch::{Payload, Row, Rows};
use ringway::element::StreamElement;

use crate::error::BenchError;

use super::socket::Load;

/// Different one-row batches.
const ONE_ROW_BATCHES: i64 = 1024;
/// Different record batches: as many as two caches hold, so that the edge is measured and
/// not the memory.
const RECORD_BATCHES: i64 = 16;
/// Rows of each of them.
const RECORD_BATCH_ROWS: i64 = 1024;

/// Prebuilt elements that go round, each with a number that can be read from it.
pub(crate) struct Elements<B: Payload> {
    prebuilt: Vec<StreamElement<B>>,
    number_of: fn(&B) -> Option<i64>,
    bytes: u64,
}

/// Batches of one typed row.
pub(crate) fn one_row_batches() -> Elements<Rows<i64>> {
    let batch = |number| Rows::from(vec![Row::at(number, number)]);
    Elements::of(
        (0..ONE_ROW_BATCHES).map(batch),
        |rows| rows.iter().next().map(|row| row.value),
        size_of::<Row<i64>>() as u64,
    )
}

/// Record batches of two int64 columns and 1,024 rows.
pub(crate) fn record_batches() -> Elements<RecordBatch> {
    let batch = |number| {
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values(0..RECORD_BATCH_ROWS));
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(
            number..number + RECORD_BATCH_ROWS,
        ));
        RecordBatch::try_from_iter([("event_time", times), ("value", values)])
            .expect("columns of one length")
    };
    Elements::of(
        (0..RECORD_BATCHES).map(batch),
        |batch| {
            batch
                .column(1)
                .as_primitive::<Int64Type>()
                .values()
                .first()
                .copied()
        },
        2 * size_of::<i64>() as u64 * RECORD_BATCH_ROWS.cast_unsigned(),
    )
}

/// The batches of a load.
pub(crate) fn of_load(load: Load) -> Elements<RecordBatch> {
    let prebuilt = load.prebuilt();
    Elements::of(
        prebuilt.batches(prebuilt.distinct()),
        // Event times go on from one batch to the next.
        |batch| {
            let times = batch.column(0).as_primitive::<Int64Type>().values();
            Some(times.first()? / times.len() as i64)
        },
        load.bytes() as u64,
    )
}

impl<B: Payload> Elements<B> {
    fn of(batches: impl Iterator<Item = B>, number_of: fn(&B) -> Option<i64>, bytes: u64) -> Self {
        Self {
            prebuilt: batches.map(StreamElement::Data).collect(),
            number_of,
            bytes,
        }
    }

    /// Bytes of values in one element.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first `count` elements, each cloned when it is asked for.
    pub(crate) fn clones(&self, count: u64) -> impl Iterator<Item = StreamElement<B>> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.prebuilt.iter().cycle().take(count).cloned()
    }

    /// Checks elements as they come.
    pub(crate) fn checker(&self, count: u64) -> Checker<B> {
        Checker {
            number_of: self.number_of,
            numbers: self.prebuilt.len() as i64,
            next: 0,
            taken: 0,
            wrong: 0,
            expected: count,
        }
    }
}

/// Takes what comes, and knows in the end whether it was right.
pub(crate) trait Take<B>: Send {
    /// Takes an element, and drops it.
    fn take(&mut self, element: StreamElement<B>);

    /// # Errors
    /// When something was lost, doubled, changed or out of order.
    fn finish(self) -> Result<(), BenchError>;
}

/// Knows which element comes next.
pub(crate) struct Checker<B> {
    number_of: fn(&B) -> Option<i64>,
    numbers: i64,
    next: i64,
    taken: u64,
    wrong: u64,
    expected: u64,
}

impl<B: Payload> Take<B> for Checker<B> {
    #[inline]
    fn take(&mut self, element: StreamElement<B>) {
        let number = match &element {
            StreamElement::Data(batch) => (self.number_of)(batch),
            _ => None,
        };
        self.wrong += u64::from(number != Some(self.next));
        self.taken += 1;
        self.next += 1;
        if self.next == self.numbers {
            self.next = 0;
        }
    }

    fn finish(self) -> Result<(), BenchError> {
        if self.wrong == 0 && self.taken == self.expected {
            return Ok(());
        }
        Err(BenchError::new(format!(
            "{} elements came instead of {}, {} of them out of order",
            self.taken, self.expected, self.wrong
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::super::socket::Kind;
    use super::*;

    fn check<B: Payload>(elements: &Elements<B>) {
        let takes = |from: &mut dyn Iterator<Item = StreamElement<B>>| {
            let mut checker = elements.checker(2_000);
            from.for_each(|element| checker.take(element));
            checker.finish().is_ok()
        };
        assert!(takes(&mut elements.clones(2_000)));
        assert!(!takes(&mut elements.clones(1_999)), "one is missing");
        assert!(
            !takes(&mut elements.clones(2_001).skip(1)),
            "one was left out"
        );
    }

    #[test]
    fn an_element_that_is_missing_is_found() {
        check(&one_row_batches());
        check(&record_batches());
        check(&of_load(Load {
            kind: Kind::Bytes(8),
            rows: 7,
        }));
    }
}
