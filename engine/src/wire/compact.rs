//! Batches as the library is to encode them: without what it would send in vain, or break.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, GenericListArray, OffsetSizeTrait, RecordBatch, StructArray,
    new_empty_array,
};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::datatypes::{DataType, FieldRef};
use arrow::error::ArrowError;

/// The batch with its views over no more text than they use, where they use less than half:
/// the library would send all that is behind them. And without slices of no runs inside of
/// lists, of which it would send one that has no value.
pub(super) fn compacted(batch: &RecordBatch) -> Result<Option<RecordBatch>, ArrowError> {
    let columns: Vec<Option<ArrayRef>> = batch.columns().iter().map(compacted_column).collect();
    if columns.iter().all(Option::is_none) {
        return Ok(None);
    }
    let columns = columns
        .into_iter()
        .zip(batch.columns())
        .map(|(compact, column)| compact.unwrap_or_else(|| Arc::clone(column)));
    RecordBatch::try_new(batch.schema(), columns.collect()).map(Some)
}

fn compacted_column(column: &ArrayRef) -> Option<ArrayRef> {
    match column.data_type() {
        DataType::Utf8View | DataType::BinaryView => compacted_view(column),
        other if has_runs(other) => without_empty_runs(column),
        _ => None,
    }
}

fn compacted_view(column: &ArrayRef) -> Option<ArrayRef> {
    fn wastes(buffers: &[Buffer], used: usize) -> bool {
        buffers.iter().map(Buffer::len).sum::<usize>() > used.saturating_mul(2)
    }
    match column.data_type() {
        DataType::Utf8View => {
            let views = column.as_string_view();
            wastes(views.data_buffers(), views.total_buffer_bytes_used())
                .then(|| Arc::new(views.gc()) as ArrayRef)
        }
        DataType::BinaryView => {
            let views = column.as_binary_view();
            wastes(views.data_buffers(), views.total_buffer_bytes_used())
                .then(|| Arc::new(views.gc()) as ArrayRef)
        }
        _ => None,
    }
}

/// Whether there are runs inside of a column of this type.
fn has_runs(data_type: &DataType) -> bool {
    let are_runs = |field: &FieldRef| {
        let inner = field.data_type();
        matches!(inner, DataType::RunEndEncoded(_, _)) || has_runs(inner)
    };
    match data_type {
        DataType::List(item) | DataType::LargeList(item) => are_runs(item),
        DataType::Struct(fields) => fields.iter().any(are_runs),
        _ => false,
    }
}

/// The column anew, if it has lists of nothing that are a slice of something.
fn without_empty_runs(column: &ArrayRef) -> Option<ArrayRef> {
    match column.data_type() {
        DataType::List(item) => list_without(column.as_list::<i32>(), item),
        DataType::LargeList(item) => list_without(column.as_list::<i64>(), item),
        DataType::Struct(fields) => {
            let record = column.as_struct();
            let changed: Vec<_> = record.columns().iter().map(without_empty_runs).collect();
            if changed.iter().all(Option::is_none) {
                return None;
            }
            let columns = changed.into_iter().zip(record.columns());
            let columns = columns.map(|(new, old)| new.unwrap_or_else(|| Arc::clone(old)));
            let nulls = record.nulls().cloned();
            Some(Arc::new(StructArray::new(
                fields.clone(),
                columns.collect(),
                nulls,
            )))
        }
        _ => None,
    }
}

fn list_without<O: OffsetSizeTrait>(
    list: &GenericListArray<O>,
    item: &FieldRef,
) -> Option<ArrayRef> {
    let offsets = list.offsets();
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    let used = (last - first).as_usize();
    let (offsets, values) = if used == 0 {
        if list.values().is_empty() {
            return None;
        }
        let offsets = OffsetBuffer::<O>::new_zeroed(list.len());
        (offsets, new_empty_array(item.data_type()))
    } else {
        let values = without_empty_runs(&list.values().slice(first.as_usize(), used))?;
        (OffsetBuffer::from_lengths(offsets.lengths()), values)
    };
    let nulls = list.nulls().cloned();
    let list = GenericListArray::new(Arc::clone(item), offsets, values, nulls);
    Some(Arc::new(list))
}
