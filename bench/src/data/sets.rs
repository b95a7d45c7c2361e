//! The sets of batches.

use std::path::Path;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use ringway::connect::{NexmarkKind, nexmark_batches};

use crate::error::BenchError;
use crate::job::{FLIGHT_COLUMNS, flights_file, read_parquet};

use super::{lineitem, made};

/// Rows of a batch: few enough that none is larger than a message of a shared edge.
const BATCH_ROWS: usize = 2_048;
const SMOKE_BATCH_ROWS: usize = 128;

/// Batches of a set: some megabytes, neither one batch that stays in a cache nor the memory of
/// the machine.
const BATCHES: usize = 16;
const SMOKE_BATCHES: usize = 4;

/// What the batches are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// Bids of the Nexmark benchmark: numbers and texts.
    Bids,
    /// People of the Nexmark benchmark: mostly texts.
    People,
    /// Table lineitem of TPC-H: numbers, decimals, dates and short texts.
    Lineitem,
    /// The flights of the examples: two numbers, of which one may be null, and two short texts.
    Flights,
    /// Texts of some ten to some hundred bytes.
    Strings,
    /// Decimals of 128 bits.
    Decimals,
    /// Lists, and lists of lists.
    Lists,
    /// Texts of which there are few different ones.
    Dictionaries,
    /// Half of all values are null.
    Nulls,
}

impl Set {
    pub(super) const ALL: [Self; 9] = [
        Self::Bids,
        Self::People,
        Self::Lineitem,
        Self::Flights,
        Self::Strings,
        Self::Decimals,
        Self::Lists,
        Self::Dictionaries,
        Self::Nulls,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bids => "nexmark-bids",
            Self::People => "nexmark-people",
            Self::Lineitem => "lineitem",
            Self::Flights => "flights",
            Self::Strings => "strings",
            Self::Decimals => "decimals",
            Self::Lists => "lists",
            Self::Dictionaries => "dictionaries",
            Self::Nulls => "nulls",
        }
    }
}

/// Where sets come from, and how large they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sets<'a> {
    folder: &'a Path,
    batches: usize,
    batch_rows: usize,
}

impl<'a> Sets<'a> {
    /// Sets of which those in files are in `folder`.
    pub(crate) fn in_folder(folder: &'a Path, smoke: bool) -> Self {
        let (batches, batch_rows) = match smoke {
            true => (SMOKE_BATCHES, SMOKE_BATCH_ROWS),
            false => (BATCHES, BATCH_ROWS),
        };
        Self {
            folder,
            batches,
            batch_rows,
        }
    }

    /// The batches of a set.
    ///
    /// # Errors
    /// When a file is not there or has other columns; the error names it.
    pub(super) fn batches(&self, set: Set) -> Result<Vec<RecordBatch>, BenchError> {
        let rows = self.batches * self.batch_rows;
        let nexmark = |kind| Ok(nexmark_batches(kind, rows, self.batch_rows));
        let made = |batch: fn(i64, usize) -> Result<RecordBatch, BenchError>| {
            let first = (0..self.batches).map(|number| (number * self.batch_rows) as i64);
            first.map(|first| batch(first, self.batch_rows)).collect()
        };
        match set {
            Set::Bids => nexmark(NexmarkKind::Bid),
            Set::People => nexmark(NexmarkKind::Person),
            Set::Lineitem => lineitem::batches(self.batches, self.batch_rows),
            Set::Flights => self.flights(),
            Set::Strings => made(made::strings),
            Set::Decimals => made(made::decimals),
            Set::Lists => made(made::lists),
            Set::Dictionaries => made(made::dictionaries),
            Set::Nulls => made(made::nulls),
        }
    }

    fn flights(&self) -> Result<Vec<RecordBatch>, BenchError> {
        let file = read_parquet(&flights_file(self.folder)?, &FLIGHT_COLUMNS)?;
        let Some(first) = file.first() else {
            return Err(BenchError::new("flights.parquet has no rows"));
        };
        let all = concat_batches(&first.schema(), file.iter())?;
        let mut batches = Vec::new();
        for number in 0..self.batches.min(all.num_rows() / self.batch_rows) {
            let part = all.slice(number * self.batch_rows, self.batch_rows);
            // In memory of its own, as a batch that was made has it.
            batches.push(concat_batches(&first.schema(), [&part])?);
        }
        Ok(batches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::socket::{Prebuilt, Tally};
    use crate::job::data_folder;

    #[test]
    fn every_set_has_batches_of_one_schema_whose_checksums_differ() {
        let folder = data_folder();
        let sets = Sets::in_folder(&folder, true);
        for set in Set::ALL {
            let batches = sets.batches(set).unwrap();
            assert_eq!(batches.len(), SMOKE_BATCHES, "{set:?}");
            assert!(
                batches
                    .iter()
                    .all(|batch| batch.schema() == batches[0].schema()
                        && batch.num_rows() == SMOKE_BATCH_ROWS),
                "{set:?}"
            );
            let prebuilt = Prebuilt::hashed(batches).unwrap();
            let sums: Vec<u64> = (1..4).map(|count| prebuilt.total(count).sum).collect();
            assert!(sums[0] != sums[1] && sums[1] != sums[2], "{set:?}");
            let mut tally = Tally::of(prebuilt.tallied());
            prebuilt.batches(11).for_each(|batch| tally.add(&batch));
            assert_eq!(tally.total(), prebuilt.total(11), "{set:?}");
        }
    }

    #[test]
    fn batches_are_small_enough_for_a_message_of_a_shared_edge() {
        let folder = data_folder();
        for set in [Set::People, Set::Lineitem, Set::Strings, Set::Lists] {
            let batches = Sets::in_folder(&folder, false).batches(set).unwrap();
            let prebuilt = Prebuilt::hashed(batches).unwrap();
            let bytes = prebuilt.bytes(prebuilt.distinct()) / prebuilt.distinct();
            assert!(bytes < 900 << 10, "{set:?} has {bytes} bytes a batch");
        }
    }
}
