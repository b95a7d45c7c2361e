//! What goes over a socket: prebuilt record batches, and what the receiver must have seen.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use ringway::connect::checksum;
use serde::{Deserialize, Serialize};

use crate::error::BenchError;

/// Bytes of all prebuilt batches together, so that what is measured is neither one batch that
/// stays in a cache nor the memory of the machine.
pub(crate) const PREBUILT_BYTES: usize = 4 << 20;
const PREBUILT_BATCHES_MIN: usize = 4;
const PREBUILT_BATCHES_MAX: usize = 1024;

/// Bytes of a text.
const TEXT_BYTES: usize = 100;

/// What a batch is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `event_time` and `value`, both int64.
    Int64,
    /// `event_time` and a text of 100 bytes.
    String100,
    /// `event_time` and so many bytes, a multiple of four.
    Bytes(usize),
}

/// The batches of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) kind: Kind,
    /// Rows of a batch.
    pub(crate) rows: usize,
}

/// Rows and their sum: that of all numbers, and of all texts as words. And their order: how often
/// a row did not begin where the one before ended, as where the prebuilt ones begin anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Total {
    pub(crate) rows: u64,
    pub(crate) sum: u64,
    breaks: u64,
    last: i64,
}

/// The batches of a load, made beforehand.
pub(crate) struct Prebuilt {
    batches: Arc<[RecordBatch]>,
    totals: Vec<Total>,
    /// Of each batch.
    bytes: Vec<u64>,
    is_hashed: bool,
}

impl Load {
    pub(crate) fn schema(self) -> SchemaRef {
        let value = match self.kind {
            Kind::Int64 => DataType::Int64,
            Kind::String100 => DataType::Utf8,
            Kind::Bytes(_) => DataType::Binary,
        };
        Arc::new(Schema::new(vec![
            Field::new("event_time", DataType::Int64, true),
            Field::new("value", value, false),
        ]))
    }

    /// Bytes of a batch in Arrow's buffers.
    pub(crate) const fn bytes(self) -> usize {
        let value_bytes = match self.kind {
            Kind::Int64 => return self.rows * 2 * size_of::<i64>(),
            Kind::String100 => TEXT_BYTES,
            Kind::Bytes(bytes) => bytes,
        };
        self.rows * (size_of::<i64>() + value_bytes) + (self.rows + 1) * size_of::<i32>()
    }

    pub(crate) fn prebuilt(self) -> Prebuilt {
        let batches = PREBUILT_BYTES / self.bytes();
        let batches = batches.clamp(PREBUILT_BATCHES_MIN, PREBUILT_BATCHES_MAX);
        let schema = self.schema();
        let batch = |number| self.batch(number, &schema);
        let batches: Vec<RecordBatch> = (0..batches).map(batch).collect();
        Prebuilt {
            totals: batches.iter().map(Total::of).collect(),
            bytes: vec![self.bytes() as u64; batches.len()],
            batches: batches.into(),
            is_hashed: false,
        }
    }

    fn batch(self, number: usize, schema: &SchemaRef) -> RecordBatch {
        let first = (number * self.rows) as i64;
        let numbers = first..first + self.rows as i64;
        let times: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers.clone()));
        let values: ArrayRef = match self.kind {
            Kind::Int64 => {
                let spread = numbers.map(|number| number.wrapping_mul(0x5851_f42d_4c95_7f2d));
                Arc::new(Int64Array::from_iter_values(spread))
            }
            Kind::String100 => {
                let texts = numbers.map(|number| format!("{number:0TEXT_BYTES$}"));
                Arc::new(StringArray::from_iter_values(texts))
            }
            Kind::Bytes(bytes) => {
                let mut value = vec![0x5a; bytes];
                let values = numbers.map(|number| {
                    let first = bytes.min(size_of::<i64>());
                    value[..first].copy_from_slice(&number.to_le_bytes()[..first]);
                    value.clone()
                });
                Arc::new(BinaryArray::from_iter_values(values))
            }
        };
        let batch = RecordBatch::try_new(Arc::clone(schema), vec![times, values]);
        batch.expect("the columns are those of the schema")
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows;
        match self.kind {
            Kind::Int64 => write!(f, "int64/{rows}"),
            Kind::String100 => write!(f, "string100/{rows}"),
            Kind::Bytes(bytes) => write!(f, "bytes{bytes}/{rows}"),
        }
    }
}

impl Prebuilt {
    /// Batches of any types, of which checksums are compared.
    ///
    /// # Errors
    /// When there is none, or it can't be said how long one is.
    pub(crate) fn hashed(batches: Vec<RecordBatch>) -> Result<Self, BenchError> {
        if batches.is_empty() {
            return Err(BenchError::new("there is no batch to send"));
        }
        let bytes = batches.iter().map(|batch| {
            let columns = batch.columns().iter();
            let bytes = columns.map(|column| column.to_data().get_slice_memory_size());
            bytes.sum::<Result<usize, _>>().map(|bytes| bytes as u64)
        });
        let hashed = |(at, batch): (usize, &RecordBatch)| {
            Total::hashed(batch.num_rows() as u64, checksum(batch), at)
        };
        Ok(Self {
            totals: batches.iter().enumerate().map(hashed).collect(),
            bytes: bytes.collect::<Result<_, _>>()?,
            batches: batches.into(),
            is_hashed: true,
        })
    }

    /// What the receiver needs to know to make a [`Tally`](super::Tally) of them.
    pub(crate) fn tallied(&self) -> Option<u64> {
        self.is_hashed.then(|| self.distinct())
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.batches[0].schema()
    }

    /// How many different batches there are.
    pub(crate) fn distinct(&self) -> u64 {
        self.batches.len() as u64
    }

    /// The first `count` batches, going round.
    pub(crate) fn batches(&self, count: u64) -> impl Iterator<Item = RecordBatch> + use<> {
        let batches = Arc::clone(&self.batches);
        let mut next = 0;
        (0..count).map(move |_| {
            let batch = batches[next].clone();
            next = if next + 1 == batches.len() {
                0
            } else {
                next + 1
            };
            batch
        })
    }

    /// What they come to.
    pub(crate) fn total(&self, count: u64) -> Total {
        let mut total = Total::default();
        for (batch, times) in self.totals.iter().zip(self.times(count)) {
            total.rows += batch.rows * times;
            total.sum = total.sum.wrapping_add(batch.sum.wrapping_mul(times));
        }
        if self.is_hashed {
            return total;
        }
        total.in_rounds(&self.totals, count)
    }

    /// Bytes of the first `count` batches, in Arrow's buffers.
    pub(crate) fn bytes(&self, count: u64) -> u64 {
        let each = self.bytes.iter().zip(self.times(count));
        each.map(|(bytes, times)| bytes * times).sum()
    }

    /// How often each of them is among the first `count`.
    fn times(&self, count: u64) -> impl Iterator<Item = u64> + use<> {
        let distinct = self.distinct();
        let (rounds, rest) = (count / distinct, count % distinct);
        (0..distinct).map(move |at| rounds + u64::from(at < rest))
    }
}

impl Total {
    pub(crate) fn of(batch: &RecordBatch) -> Self {
        let mut total = Self::default();
        total.add(batch);
        total
    }

    /// Of a batch of which the checksum is known; `at` is its place in the round, which the order
    /// shows by.
    pub(crate) fn hashed(rows: u64, checksum: u64, at: usize) -> Self {
        Self {
            rows,
            sum: checksum.wrapping_mul(at as u64 + 1),
            ..Self::default()
        }
    }

    /// Adds a batch: it is read to the end, as a consumer would.
    #[inline]
    pub(crate) fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows() as u64;
        let times = batch.column(0).as_primitive::<Int64Type>().values();
        if let [first, .., last] | [first @ last] = times[..] {
            self.follow(first, last, 1);
        }
        self.sum = self.sum.wrapping_add(sum_of_words(times.inner()));
        let values = batch.column(1);
        self.sum = self.sum.wrapping_add(match values.data_type() {
            DataType::Int64 => sum_of_words(values.as_primitive::<Int64Type>().values().inner()),
            DataType::Binary => {
                let values = values.as_binary::<i32>();
                sum_of_values(values.value_offsets(), values.value_data())
            }
            _ => {
                let texts = values.as_string::<i32>();
                sum_of_values(texts.value_offsets(), texts.value_data())
            }
        });
    }

    /// What was added begins at `first` and ends at `last`; it should begin `step` behind what was
    /// added before.
    #[inline]
    pub(crate) fn follow(&mut self, first: i64, last: i64, step: i64) {
        self.breaks += u64::from(first != self.last.wrapping_add(step));
        self.last = last;
    }

    /// The same in the order of `count` that go round, of which `all` are one round.
    pub(crate) fn in_rounds(self, all: &[Self], count: u64) -> Self {
        let Some(last) = count.checked_sub(1) else {
            return self;
        };
        let round = all.len() as u64;
        Self {
            breaks: count.div_ceil(round),
            last: all[(last % round) as usize].last,
            ..self
        }
    }

    /// # Errors
    /// When something else came.
    pub(crate) fn require(self, expected: Self) -> Result<(), BenchError> {
        if self == expected {
            return Ok(());
        }
        Err(BenchError::new(format!(
            "{self:?} came, and {expected:?} was sent"
        )))
    }
}

/// The wrapping sum of the bytes as 64-bit words, the last of which may be shorter.
#[inline]
pub(crate) fn sum_of_words(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let sum = words.iter().fold(0, |sum: u64, word| {
        sum.wrapping_add(u64::from_le_bytes(*word))
    });
    sum.wrapping_add(u64::from_le_bytes(last))
}

/// The sum of all values, whose lengths are multiples of four.
#[inline]
fn sum_of_values(offsets: &[i32], bytes: &[u8]) -> u64 {
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    sum_of_halves(&bytes[first as usize..last as usize])
}

/// The sum of the bytes as 32-bit words: texts may come in other batches than they were sent in,
/// and their length is a multiple of that.
#[inline]
fn sum_of_halves(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let halves = |word: u64| (word & 0xffff_ffff) + (word >> 32);
    let add = |sum: u64, word: &[u8; 8]| sum.wrapping_add(halves(u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().fold(halves(u64::from_le_bytes(last)), add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_known_beforehand() {
        for (kind, rows) in [
            (Kind::Int64, 1),
            (Kind::Int64, 1024),
            (Kind::String100, 300),
            (Kind::Bytes(16), 300),
        ] {
            let load = Load { kind, rows };
            let prebuilt = load.prebuilt();
            for count in [1, 7, 3_000] {
                let mut total = Total::default();
                prebuilt.batches(count).for_each(|batch| total.add(&batch));
                assert_eq!(prebuilt.total(count), total);
                assert_eq!(total.rows, count * load.rows as u64);
                assert!(total.require(prebuilt.total(count + 1)).is_err());
            }
        }
    }

    #[test]
    fn batches_that_are_lost_doubled_or_swapped_are_found() {
        for rows in [1, 300] {
            let kind = Kind::String100;
            let prebuilt = Load { kind, rows }.prebuilt();
            let comes_to = |order: &[usize]| {
                let batches: Vec<RecordBatch> = prebuilt.batches(4).collect();
                let mut total = Total::default();
                order.iter().for_each(|at| total.add(&batches[*at]));
                total.require(prebuilt.total(4)).is_ok()
            };
            assert!(comes_to(&[0, 1, 2, 3]));
            assert!(!comes_to(&[0, 1, 3]), "one was lost");
            assert!(!comes_to(&[0, 1, 1, 2, 3]), "one came twice");
            for swapped in [[1, 0, 2, 3], [0, 2, 1, 3], [0, 1, 3, 2], [3, 1, 2, 0]] {
                assert!(!comes_to(&swapped), "{swapped:?}");
            }
        }
    }

    #[test]
    fn a_batch_that_comes_in_pieces_comes_to_the_same() {
        for kind in [Kind::Int64, Kind::String100, Kind::Bytes(12)] {
            let load = Load { kind, rows: 64 };
            let batch = load.batch(3, &load.schema());
            let mut total = Total::of(&batch.slice(0, 13));
            total.add(&batch.slice(13, 51));
            assert_eq!(total, Total::of(&batch));
        }
    }

    #[test]
    fn the_bytes_of_a_batch_are_those_of_its_buffers() {
        for kind in [Kind::Int64, Kind::String100, Kind::Bytes(12)] {
            let load = Load { kind, rows: 64 };
            let batch = load.batch(0, &load.schema());
            let buffers = batch.columns().iter().flat_map(|column| {
                let data = column.to_data();
                data.buffers()
                    .iter()
                    .map(|buffer| buffer.len())
                    .collect::<Vec<_>>()
            });
            assert_eq!(buffers.sum::<usize>(), load.bytes());
        }
    }
}
