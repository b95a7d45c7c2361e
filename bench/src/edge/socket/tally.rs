//! What a receiver makes of the batches that come.

use arrow::array::{ArrayData, RecordBatch};
use ringway::connect::checksum;

use super::load::{Total, sum_of_words};

/// Batches as they come, and what they come to.
pub(crate) enum Tally {
    /// The sum of all words: all that is read of a batch of numbers, or of a text.
    Words(Total),
    /// The checksum over all columns, of whatever types.
    Hashed(Hashed),
}

/// Checksums of batches that go round. That of a batch whose bytes are those of the batch a round
/// before is known, and need not be computed, which takes longer than a batch is on its way.
pub(crate) struct Hashed {
    total: Total,
    /// Of each batch of a round.
    known: Vec<Option<Known>>,
    next: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Known {
    rows: usize,
    words: u64,
    checksum: u64,
}

impl Tally {
    /// Of words, or of checksums of so many batches that go round.
    pub(crate) fn of(hashed: Option<u64>) -> Self {
        match hashed {
            None => Self::Words(Total::default()),
            Some(distinct) => Self::Hashed(Hashed {
                total: Total::default(),
                known: vec![None; distinct.max(1) as usize],
                next: 0,
            }),
        }
    }

    /// Adds a batch: it is read to the end, as a consumer would.
    #[inline]
    pub(crate) fn add(&mut self, batch: &RecordBatch) {
        match self {
            Self::Words(total) => total.add(batch),
            Self::Hashed(hashed) => hashed.add(batch),
        }
    }

    /// What they come to.
    pub(crate) fn total(&self) -> Total {
        match self {
            Self::Words(total) => *total,
            Self::Hashed(hashed) => hashed.total,
        }
    }
}

impl Hashed {
    fn add(&mut self, batch: &RecordBatch) {
        let (rows, words) = (batch.num_rows(), words_of(batch));
        let at = self.next;
        self.next = if at + 1 == self.known.len() {
            0
        } else {
            at + 1
        };
        let known = &mut self.known[at];
        let is_same = |known: &Known| known.rows == rows && known.words == words;
        let known = match known.filter(is_same) {
            Some(same) => same,
            None => *known.insert(Known {
                rows,
                words,
                checksum: checksum(batch),
            }),
        };
        let hashed = Total::hashed(rows as u64, known.checksum, at);
        self.total.rows += hashed.rows;
        self.total.sum = self.total.sum.wrapping_add(hashed.sum);
    }
}

/// A sum over all bytes of a batch, in which each buffer has a weight of its own.
fn words_of(batch: &RecordBatch) -> u64 {
    let columns = batch.columns().iter();
    columns.fold(0, |words, column| mixed(words, &column.to_data()))
}

fn mixed(words: u64, data: &ArrayData) -> u64 {
    let nulls = data.nulls().map(|nulls| nulls.validity());
    let buffers = data.buffers().iter().map(|buffer| buffer.as_slice());
    let words = nulls
        .into_iter()
        .chain(buffers)
        .fold(words, |words, bytes| {
            words.rotate_left(7).wrapping_add(sum_of_words(bytes))
        });
    data.child_data().iter().fold(words, mixed)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn batch(number: i64, text: &str) -> RecordBatch {
        let numbers = Arc::new(Int64Array::from(vec![Some(number), None])) as ArrayRef;
        let texts = Arc::new(StringArray::from(vec![text, "same"])) as ArrayRef;
        RecordBatch::try_from_iter([("n", numbers), ("s", texts)]).unwrap()
    }

    fn total(batches: &[RecordBatch]) -> Total {
        let mut tally = Tally::of(Some(2));
        batches.iter().for_each(|batch| tally.add(batch));
        tally.total()
    }

    #[test]
    fn batches_that_go_round_come_to_the_sum_of_their_checksums_by_place() {
        let (one, two) = (batch(1, "a"), batch(2, "b"));
        let sum = checksum(&one).wrapping_add(checksum(&two).wrapping_mul(2));
        let twice = [one.clone(), two.clone(), one, two];
        let total = total(&twice);
        assert_eq!((total.rows, total.sum), (8, sum.wrapping_mul(2)));
    }

    #[test]
    fn batches_in_another_order_are_found() {
        let (one, two) = (batch(1, "a"), batch(2, "b"));
        assert_ne!(total(&[one.clone(), two.clone()]), total(&[two, one]));
    }

    #[test]
    fn a_batch_that_has_changed_on_a_later_round_is_found() {
        let (one, two) = (batch(1, "a"), batch(2, "b"));
        let right = total(&[one.clone(), two.clone(), one.clone(), two.clone()]);
        for wrong in [batch(3, "b"), batch(2, "c")] {
            assert_ne!(
                total(&[one.clone(), two.clone(), one.clone(), wrong]),
                right
            );
        }
    }
}
