//! The pieces in which files are read, and which subtask reads which.

use serde::{Deserialize, Serialize};

use crate::connect::ConnectError;
use crate::element::{EVENT_TIME_MIN, EventTime};

use super::listed::ListedFile;

/// A piece of input that is read in one go, by one subtask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Which of the source's files it is in, from 0.
    pub file: usize,
    /// What of the file.
    pub part: Part,
    /// No row of the split is earlier; what is known of it before it is read.
    pub event_time_min: EventTime,
}

impl Split {
    /// A whole file, of which nothing is known before it is read.
    pub const fn whole(file: usize) -> Self {
        Self {
            file,
            part: Part::Whole,
            event_time_min: EVENT_TIME_MIN,
        }
    }
}

/// What of a file a split is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// All of it.
    Whole,
    /// The lines that begin in these bytes, the last one excluded.
    Bytes {
        /// The first byte.
        from: u64,
        /// The one after the last.
        to: u64,
    },
    /// The row group of this number, from 0.
    RowGroup(usize),
    /// The batches of these numbers, from 0, the last one excluded.
    Batches {
        /// The first batch.
        from: usize,
        /// The one after the last.
        to: usize,
    },
}

impl Part {
    /// Whether pieces like this one are parts of one stream, in the order of the file.
    pub(crate) const fn is_of_one_stream(self) -> bool {
        matches!(self, Self::Bytes { .. } | Self::Batches { .. })
    }
}

/// How far a split was read: all before it was handed on, and nothing after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// Nothing was read.
    #[default]
    Start,
    /// Of text: so many bytes of the file, uncompressed if it is compressed.
    Bytes(u64),
    /// Of batches: the batch of this number of the file, and so many rows of it.
    Batch {
        /// The batch, from 0.
        batch: usize,
        /// How many of its rows were handed on.
        rows: usize,
    },
    /// Of a row group: so many rows.
    Rows(usize),
}

/// Splits of a file at most, however small they are asked to be.
const FILE_SPLITS_MAX: u64 = 16_384;

/// Makes sure that pieces of `split_bytes` are some.
pub(crate) fn require_split_bytes(split_bytes: u64) -> Result<(), ConnectError> {
    match split_bytes {
        0 => Err(ConnectError::option("split_bytes", "is 0; give 1 or more")),
        _ => Ok(()),
    }
}

/// The splits of the file `file`, which is `listed`: pieces of about `split_bytes`, if it is
/// larger.
pub(crate) fn byte_splits(file: usize, listed: &ListedFile, split_bytes: u64) -> Vec<Split> {
    let size = listed.size_bytes;
    let pieces = size.div_ceil(split_bytes.max(1)).min(FILE_SPLITS_MAX);
    if pieces <= 1 {
        return vec![Split::whole(file)];
    }
    let edge = |piece: u64| {
        let bytes = u128::from(size) * u128::from(piece) / u128::from(pieces);
        u64::try_from(bytes).unwrap_or(size)
    };
    let split = |piece| Split {
        part: Part::Bytes {
            from: edge(piece),
            to: edge(piece + 1),
        },
        ..Split::whole(file)
    };
    (0..pieces).map(split).collect()
}

/// The splits of the file `file`, whose batches take `batch_bytes`: runs of about `split_bytes`.
pub(crate) fn batch_splits(file: usize, batch_bytes: &[u64], split_bytes: u64) -> Vec<Split> {
    let batches = batch_bytes.len();
    let least = total_bytes(batch_bytes) / FILE_SPLITS_MAX;
    let (mut splits, mut from, mut bytes) = (Vec::new(), 0, 0_u64);
    for (to, batch_bytes) in (1..).zip(batch_bytes) {
        bytes = bytes.saturating_add(*batch_bytes);
        if bytes >= split_bytes.max(least) || to == batches {
            splits.push(Split {
                part: Part::Batches { from, to },
                ..Split::whole(file)
            });
            (from, bytes) = (to, 0);
        }
    }
    if splits.len() <= 1 {
        return vec![Split::whole(file)];
    }
    splits
}

/// The sum of what a file says of its batches, which may be anything.
pub(crate) fn total_bytes(batch_bytes: &[u64]) -> u64 {
    let total = batch_bytes.iter().copied();
    total.fold(0, u64::saturating_add)
}

/// Whether the split of this number, of all splits of a source, is read by subtask `index` of
/// `parallelism`: every `parallelism`-th is, so that all subtasks move through the input side by
/// side and no subtask's watermark is far behind.
pub(crate) const fn is_assigned(number: usize, index: u32, parallelism: u32) -> bool {
    assert!(index < parallelism, "a subtask is one of its operator's");
    number % parallelism as usize == index as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_say_of_its_batches_what_it_will() {
        let splits = batch_splits(3, &[u64::MAX, 7, u64::MAX, 0], 10);
        let parts = splits.iter().map(|split| (split.file, split.part));
        let batches = [(0, 1), (1, 3), (3, 4)];
        let expected = batches.map(|(from, to)| (3, Part::Batches { from, to }));
        assert!(parts.eq(expected), "{splits:?}");
    }
}
