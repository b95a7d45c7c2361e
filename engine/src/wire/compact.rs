//! Batches as the library is to encode them: without what it would write in vain, or break.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray,
    OffsetSizeTrait, RecordBatch, StructArray, new_empty_array,
};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType, FieldRef};
use arrow::error::ArrowError;

/// The batch with its views, of text or of lists, over no more than they use, where they use less
/// than half: the library would write all that is behind them. And without slices of no runs
/// inside of lists, of which it would write one that has no value.
pub(crate) fn compacted(batch: &RecordBatch) -> Result<Option<RecordBatch>, ArrowError> {
    let Some(columns) = any_compacted(batch.columns()) else {
        return Ok(None);
    };
    RecordBatch::try_new(batch.schema(), columns).map(Some)
}

/// All of `columns`, if one of them was compacted.
fn any_compacted(columns: &[ArrayRef]) -> Option<Vec<ArrayRef>> {
    let changed: Vec<Option<ArrayRef>> = columns.iter().map(compacted_array).collect();
    if changed.iter().all(Option::is_none) {
        return None;
    }
    let columns = changed.into_iter().zip(columns);
    let columns = columns.map(|(new, old)| new.unwrap_or_else(|| Arc::clone(old)));
    Some(columns.collect())
}

fn compacted_array(array: &ArrayRef) -> Option<ArrayRef> {
    if !may_waste(array.data_type()) {
        return None;
    }
    match array.data_type() {
        DataType::Utf8View => {
            let views = array.as_string_view();
            wastes(views.data_buffers(), views.total_buffer_bytes_used())
                .then(|| Arc::new(views.gc()) as ArrayRef)
        }
        DataType::BinaryView => {
            let views = array.as_binary_view();
            wastes(views.data_buffers(), views.total_buffer_bytes_used())
                .then(|| Arc::new(views.gc()) as ArrayRef)
        }
        DataType::List(item) => compacted_list(array.as_list::<i32>(), item),
        DataType::LargeList(item) => compacted_list(array.as_list::<i64>(), item),
        DataType::ListView(item) => compacted_list_view(array.as_list_view::<i32>(), item),
        DataType::LargeListView(item) => compacted_list_view(array.as_list_view::<i64>(), item),
        DataType::FixedSizeList(item, size) => {
            let list = array.as_fixed_size_list();
            let values = compacted_array(list.values())?;
            let (item, nulls) = (Arc::clone(item), list.nulls().cloned());
            Some(Arc::new(FixedSizeListArray::new(
                item, *size, values, nulls,
            )))
        }
        DataType::Map(item, ordered) => compacted_map(array.as_map(), item, *ordered),
        DataType::Struct(fields) => {
            let record = array.as_struct();
            let columns = any_compacted(record.columns())?;
            let nulls = record.nulls().cloned();
            Some(Arc::new(StructArray::new(fields.clone(), columns, nulls)))
        }
        _ => None,
    }
}

/// Whether more may be behind a slice of such an array than the library leaves out.
fn may_waste(data_type: &DataType) -> bool {
    let are_runs = |item: &FieldRef| matches!(item.data_type(), DataType::RunEndEncoded(_, _));
    match data_type {
        DataType::Utf8View
        | DataType::BinaryView
        | DataType::ListView(_)
        | DataType::LargeListView(_) => true,
        DataType::List(item) | DataType::LargeList(item) => {
            are_runs(item) || may_waste(item.data_type())
        }
        DataType::Struct(fields) => fields
            .iter()
            .any(|field| are_runs(field) || may_waste(field.data_type())),
        DataType::FixedSizeList(item, size) => *size > 0 && may_waste(item.data_type()),
        DataType::Map(item, _) => may_waste(item.data_type()),
        _ => false,
    }
}

fn wastes(buffers: &[Buffer], used: usize) -> bool {
    buffers.iter().map(Buffer::len).sum::<usize>() > used.saturating_mul(2)
}

/// The list anew, if what is in it was compacted, or if it has lists of nothing that are a slice
/// of something.
fn compacted_list<O: OffsetSizeTrait>(
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
        let values = compacted_array(&list.values().slice(first.as_usize(), used))?;
        (OffsetBuffer::from_lengths(offsets.lengths()), values)
    };
    let nulls = list.nulls().cloned();
    let list = GenericListArray::new(Arc::clone(item), offsets, values, nulls);
    Some(Arc::new(list))
}

fn compacted_map(map: &MapArray, item: &FieldRef, ordered: bool) -> Option<ArrayRef> {
    let offsets = map.offsets();
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    let entries = map
        .entries()
        .slice(first.as_usize(), (last - first).as_usize());
    let columns = any_compacted(entries.columns())?;
    let nulls = entries.nulls().cloned();
    let entries = StructArray::new(entries.fields().clone(), columns, nulls);
    let offsets = OffsetBuffer::from_lengths(offsets.lengths());
    let nulls = map.nulls().cloned();
    let map = MapArray::new(Arc::clone(item), offsets, entries, nulls, ordered);
    Some(Arc::new(map))
}

/// The list anew, if what is in it was compacted, or if it is over less than half of what is
/// behind it.
fn compacted_list_view<O: OffsetSizeTrait>(
    list: &GenericListViewArray<O>,
    item: &FieldRef,
) -> Option<ArrayRef> {
    let views = list.offsets().iter().zip(list.sizes());
    let views =
        views.map(|(offset, size)| (offset.as_usize(), offset.as_usize() + size.as_usize()));
    // One of nothing is nowhere.
    let used = views
        .filter(|(from, to)| from < to)
        .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
    let (from, to) = used.unwrap_or((0, 0));
    let values = list.values().slice(from, to - from);
    let inner = compacted_array(&values);
    if inner.is_none() && list.values().len() <= 2 * values.len() {
        return None;
    }
    let moved = list.offsets().iter().zip(list.sizes());
    let moved = moved.map(|(offset, size)| match size.as_usize() {
        0 => O::zero(),
        _ => *offset - O::usize_as(from),
    });
    let list = GenericListViewArray::new(
        Arc::clone(item),
        moved.collect::<ScalarBuffer<O>>(),
        list.sizes().clone(),
        inner.unwrap_or(values),
        list.nulls().cloned(),
    );
    Some(Arc::new(list))
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BinaryViewArray, FixedSizeListBuilder, LargeListBuilder, ListBuilder, ListViewArray,
        MapBuilder, StringArray, StringBuilder, StringViewArray, StringViewBuilder,
    };
    use arrow::buffer::NullBuffer;
    use arrow::datatypes::Field;
    use arrow::ipc::writer::StreamWriter;

    use super::*;

    const ROWS: usize = 400;

    fn texts() -> impl Iterator<Item = String> {
        (0..ROWS).map(|row| format!("{row:0200}"))
    }

    fn arrays() -> Vec<ArrayRef> {
        let views = || -> StringViewArray { texts().map(Some).collect() };
        let bytes: BinaryViewArray = texts().map(|text| Some(text.into_bytes())).collect();
        let mut lists = ListBuilder::new(StringViewBuilder::new());
        let mut large = LargeListBuilder::new(StringViewBuilder::new());
        let mut pairs = FixedSizeListBuilder::new(StringViewBuilder::new(), 2);
        let mut maps = MapBuilder::new(None, StringBuilder::new(), StringViewBuilder::new());
        for (row, text) in texts().enumerate() {
            lists.values().append_value(&text);
            lists.append(row % 3 > 0);
            large.values().append_value(&text);
            large.append(true);
            for _ in 0..2 {
                pairs.values().append_value(&text);
            }
            pairs.append(row % 5 > 0);
            maps.keys().append_value("key");
            maps.values().append_value(&text);
            maps.append(true).unwrap();
        }
        let item = Arc::new(Field::new("item", DataType::Utf8, true));
        let offsets: ScalarBuffer<i32> = (0..ROWS as i32).rev().collect();
        let sizes: ScalarBuffer<i32> = (0..ROWS as i32).map(|row| row % 2).collect();
        let strings: ArrayRef = Arc::new(StringArray::from_iter_values(texts()));
        let nulls = NullBuffer::from_iter((0..ROWS).map(|row| row % 7 > 0));
        let viewed = ListViewArray::new(item, offsets, sizes, strings, Some(nulls));
        let inner = Arc::new(Field::new("inner", DataType::Utf8View, true));
        let record = StructArray::from(vec![(inner, Arc::new(views()) as ArrayRef)]);
        vec![
            Arc::new(views()),
            Arc::new(bytes),
            Arc::new(lists.finish()),
            Arc::new(large.finish()),
            Arc::new(pairs.finish()),
            Arc::new(maps.finish()),
            Arc::new(viewed),
            Arc::new(record),
        ]
    }

    fn written_bytes(batch: &RecordBatch) -> usize {
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
        writer.write(batch).unwrap();
        drop(writer);
        bytes.len()
    }

    #[test]
    fn a_small_slice_is_small_whatever_is_behind_it_and_the_same_rows() {
        for array in arrays() {
            let batch = RecordBatch::try_from_iter([("column", array)]).unwrap();
            let whole = compacted(&batch).unwrap();
            assert!(whole.is_none(), "{:?}", batch.schema());
            for (from, rows) in [(0, 3), (200, 4), (399, 1), (10, 0)] {
                let slice = batch.slice(from, rows);
                let compact = compacted(&slice).unwrap();
                let compact = compact.unwrap_or_else(|| panic!("{:?}", batch.schema()));
                assert_eq!(compact, slice);
                let bytes = written_bytes(&compact);
                assert!(bytes < 4_000, "{bytes} bytes of {:?}", batch.schema());
            }
        }
    }
}
