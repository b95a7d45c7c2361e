//! What the footers of Parquet files tell before any row is read.

use std::fmt::Display;

use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};

use crate::element::{EVENT_TIME_MIN, EventTime};

use crate::connect::event_time::to_milliseconds;
use crate::connect::side::thread::caught;
use crate::connect::{ConnectError, ListedFile, Part, Split};

use super::nesting::require_levels;

/// Reads the footer of a file.
pub(super) fn read_footer(listed: &ListedFile) -> Result<ArrowReaderMetadata, ConnectError> {
    let file = listed.open()?;
    let loaded = require_levels(&file, listed.size_bytes)
        .and_then(|()| or_reason(|| ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())));
    loaded.map_err(|reason| {
        ConnectError::file(
            &listed.path,
            format_args!("is not a Parquet file that can be read: {reason}"),
        )
    })
}

/// What `read` gives, or why not: the library panics at some of what a damaged file says.
pub(super) fn or_reason<T, E: Display>(read: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    let read = caught(read).map_err(|reason| format!("it is damaged: {reason}"))?;
    read.map_err(|error| error.to_string())
}

/// The schema that all files have; what they say about it in metadata may differ.
pub(crate) fn common_schema(
    files: &[ListedFile],
    footers: &[ArrowReaderMetadata],
) -> Result<SchemaRef, ConnectError> {
    let first = footers[0].schema();
    for (listed, footer) in files.iter().zip(footers).skip(1) {
        let schema = footer.schema();
        let same = schema.fields().len() == first.fields().len()
            && schema.fields().iter().zip(first.fields()).all(|(a, b)| {
                a.name() == b.name()
                    && a.data_type() == b.data_type()
                    && a.is_nullable() == b.is_nullable()
            });
        if !same {
            return Err(ConnectError::file(
                &listed.path,
                format_args!(
                    "its columns differ from those of {}: read files that differ by sources of \
                     their own",
                    files[0].path.display()
                ),
            ));
        }
    }
    Ok(first.clone())
}

/// Every row group of every file, with the earliest event time that its statistics tell.
pub(crate) fn row_groups(footers: &[ArrowReaderMetadata], time: &str) -> Vec<Split> {
    let mut splits = Vec::new();
    for (file, footer) in footers.iter().enumerate() {
        let row_groups = footer.metadata().row_groups();
        let earliest = earliest_event_times(footer, time);
        for (index, row_group) in row_groups.iter().enumerate() {
            if row_group.num_rows() == 0 {
                continue;
            }
            splits.push(Split {
                file,
                part: Part::RowGroup(index),
                event_time_min: earliest.get(index).copied().unwrap_or(EVENT_TIME_MIN),
            });
        }
    }
    splits
}

/// The earliest event time in each row group. Statistics are optional, so it never fails:
/// where there are none nothing is known.
fn earliest_event_times(footer: &ArrowReaderMetadata, time: &str) -> Vec<EventTime> {
    let groups = footer.metadata().row_groups();
    let minimums = StatisticsConverter::try_new(time, footer.schema(), footer.parquet_schema())
        .and_then(|converter| converter.row_group_mins(groups))
        .map_err(|error| error.to_string())
        .and_then(|minimums| to_milliseconds(&minimums));
    let Ok(minimums) = minimums else {
        return Vec::new();
    };
    minimums
        .as_primitive::<Int64Type>()
        .iter()
        .map(|minimum| minimum.unwrap_or(EVENT_TIME_MIN))
        .collect()
}

/// Bytes that the columns of `mask` take in the file.
pub(crate) fn compressed_bytes(
    footer: &ArrowReaderMetadata,
    row_groups: &[usize],
    mask: &ProjectionMask,
) -> u64 {
    let mut bytes = 0;
    for row_group in row_groups {
        let columns = footer.metadata().row_group(*row_group).columns();
        for (leaf, column) in columns.iter().enumerate() {
            if mask.leaf_included(leaf) {
                bytes += u64::try_from(column.compressed_size()).unwrap_or(0);
            }
        }
    }
    bytes
}
