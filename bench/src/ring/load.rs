//! What is moved, and how it is checked.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};

use crate::error::BenchError;

/// Elements of one type, made in an order that can be checked.
pub(crate) trait Load: Sync {
    /// As the names of the cases have it.
    const NAME: &'static str;
    /// Elements that are prepared at once, at most.
    const ROUND_ELEMENTS_MAX: u64;
    type Element: Send;
    type Taker: Taker<Self::Element>;

    /// Bytes that one element stands for.
    fn bytes(&self) -> u64;

    /// The first `count` elements. What it costs to make them is spent before the clock
    /// starts, as far as `u64` and 64 bytes are not made faster than fetched.
    fn make(&self, count: u64) -> impl Iterator<Item = Self::Element> + Send;

    /// Takes `count` elements.
    fn taker(&self, count: u64) -> Self::Taker;
}

/// Takes elements and knows in the end whether they were the right ones in the right order.
pub(crate) trait Taker<T>: Send {
    fn take(&mut self, element: T);

    /// # Errors
    /// When something was lost, doubled or out of order.
    fn finish(self) -> Result<(), BenchError>;
}

/// Numbers of 64 bits.
pub(crate) struct Words;

/// Elements of 64 bytes.
pub(crate) struct Lines;

/// Record batches, moved and never cloned on their way.
pub(crate) struct Batches {
    distinct: Vec<RecordBatch>,
}

/// What a taker has seen: how many, and whether each was the one expected.
#[derive(Debug, Default)]
pub(crate) struct Order {
    taken: u64,
    wrong: u64,
    expected: u64,
}

impl Order {
    pub(crate) fn of(expected: u64) -> Self {
        Self {
            expected,
            ..Self::default()
        }
    }

    /// An element came that should be the one with this number.
    #[inline]
    pub(crate) fn saw(&mut self, is_next: impl FnOnce(u64) -> bool) {
        self.wrong += u64::from(!is_next(self.taken));
        self.taken += 1;
    }

    /// # Errors
    /// When something was lost, doubled or out of order.
    pub(crate) fn finish(self) -> Result<(), BenchError> {
        if self.wrong == 0 && self.taken == self.expected {
            return Ok(());
        }
        Err(BenchError::new(format!(
            "{} elements came instead of {}, {} of them out of order",
            self.taken, self.expected, self.wrong
        )))
    }
}

impl Load for Words {
    const NAME: &'static str = "u64";
    const ROUND_ELEMENTS_MAX: u64 = u64::MAX;
    type Element = u64;
    type Taker = Order;

    fn bytes(&self) -> u64 {
        8
    }

    fn make(&self, count: u64) -> impl Iterator<Item = u64> + Send {
        0..count
    }

    fn taker(&self, count: u64) -> Order {
        Order::of(count)
    }
}

impl Taker<u64> for Order {
    #[inline]
    fn take(&mut self, element: u64) {
        self.saw(|next| element == next);
    }

    fn finish(self) -> Result<(), BenchError> {
        Self::finish(self)
    }
}

impl Load for Lines {
    const NAME: &'static str = "64B";
    const ROUND_ELEMENTS_MAX: u64 = u64::MAX;
    type Element = [u64; 8];
    type Taker = Order;

    fn bytes(&self) -> u64 {
        64
    }

    fn make(&self, count: u64) -> impl Iterator<Item = [u64; 8]> + Send {
        (0..count).map(|number| [number; 8])
    }

    fn taker(&self, count: u64) -> Order {
        Order::of(count)
    }
}

impl Taker<[u64; 8]> for Order {
    #[inline]
    fn take(&mut self, element: [u64; 8]) {
        self.saw(|next| element[0] == next && element[7] == next);
    }

    fn finish(self) -> Result<(), BenchError> {
        Self::finish(self)
    }
}

impl Batches {
    /// Batches of 1 to 64 rows, so that the number of rows tells which one it is.
    pub(crate) fn new() -> Self {
        let batch = |rows: i64| {
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
            RecordBatch::try_from_iter([("event_time", column.clone()), ("value", column)])
                .expect("columns of one length")
        };
        Self {
            distinct: (1..=64).map(batch).collect(),
        }
    }

    fn clones(&self, count: u64) -> Vec<RecordBatch> {
        let count = usize::try_from(count).expect("a round is small");
        self.distinct.iter().cycle().take(count).cloned().collect()
    }
}

impl Load for Batches {
    const NAME: &'static str = "record_batch";
    const ROUND_ELEMENTS_MAX: u64 = 1 << 18;
    type Element = RecordBatch;
    type Taker = Kept;

    /// The batch itself: what it holds stays where it is.
    fn bytes(&self) -> u64 {
        size_of::<RecordBatch>() as u64
    }

    fn make(&self, count: u64) -> impl Iterator<Item = RecordBatch> + Send {
        self.clones(count).into_iter()
    }

    fn taker(&self, count: u64) -> Kept {
        // Memory that was written once costs no page fault while the clock runs.
        let mut batches = self.clones(count);
        batches.clear();
        Kept {
            batches,
            order: Order::of(count),
        }
    }
}

/// Keeps the batches, since dropping one costs more than moving it.
pub(crate) struct Kept {
    batches: Vec<RecordBatch>,
    order: Order,
}

impl Taker<RecordBatch> for Kept {
    #[inline]
    fn take(&mut self, element: RecordBatch) {
        let rows = element.num_rows() as u64;
        self.order.saw(|next| rows == next % 64 + 1);
        self.batches.push(element);
    }

    fn finish(self) -> Result<(), BenchError> {
        self.order.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take<L: Load>(load: &L, elements: impl Iterator<Item = L::Element>) -> bool {
        let mut taker = load.taker(100);
        elements.for_each(|element| taker.take(element));
        taker.finish().is_ok()
    }

    fn check<L: Load>(load: &L) {
        assert!(take(load, load.make(100)));
        assert!(!take(load, load.make(99)), "one is missing");
        assert!(!take(load, load.make(101).skip(1)), "one was left out");
        assert!(
            !take(load, load.make(1).chain(load.make(99))),
            "one is doubled"
        );
    }

    #[test]
    fn what_is_lost_doubled_or_out_of_order_is_found() {
        check(&Words);
        check(&Lines);
        check(&Batches::new());
    }
}
