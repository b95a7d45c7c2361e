//! How many bytes the rows of a column take, whatever else its buffers hold.

use arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait, RunArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{
    ArrowDictionaryKeyType, DataType, Int16Type, Int32Type, Int64Type, RunEndIndexType, UnionMode,
};
use arrow::downcast_dictionary_array;

/// Bytes that the rows of `array` take. Called once for each batch and edge.
///
/// A slice counts its own rows and not the buffers behind it: they are counted, or were, with
/// the batch that they came with. Where rows refer to values that others refer to as well, each
/// counts its share of them.
pub(super) fn slice_bytes(array: &dyn Array) -> usize {
    let rows = array.len();
    let validity = array.nulls().map_or(0, |_| rows.div_ceil(8));
    let data_type = array.data_type();
    let data = match data_type {
        DataType::Null => 0,
        DataType::Boolean => rows.div_ceil(8),
        DataType::Utf8 => variable_bytes(array.as_string::<i32>().offsets()),
        DataType::LargeUtf8 => variable_bytes(array.as_string::<i64>().offsets()),
        DataType::Binary => variable_bytes(array.as_binary::<i32>().offsets()),
        DataType::LargeBinary => variable_bytes(array.as_binary::<i64>().offsets()),
        DataType::FixedSizeBinary(width) => rows * usize::try_from(*width).unwrap_or(0),
        DataType::Utf8View => view_bytes(rows, array.as_string_view().total_buffer_bytes_used()),
        DataType::BinaryView => view_bytes(rows, array.as_binary_view().total_buffer_bytes_used()),
        _ => match data_type.primitive_width() {
            Some(width) => rows * width,
            None => nested_bytes(array),
        },
    };
    validity + data
}

fn nested_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Struct(_) => array.as_struct().columns().iter().map(bytes_of).sum(),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            list_bytes(list.offsets(), list.values())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            list_bytes(list.offsets(), list.values())
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let entries: ArrayRef = std::sync::Arc::new(map.entries().clone());
            list_bytes(map.offsets(), &entries)
        }
        DataType::FixedSizeList(..) => bytes_of(array.as_fixed_size_list().values()),
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            viewed_list_bytes(list.sizes(), list.values())
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            viewed_list_bytes(list.sizes(), list.values())
        }
        DataType::Union(_, mode) => union_bytes(array, *mode),
        DataType::Dictionary(..) => dictionary_bytes(array),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => run_bytes(array.as_run::<Int16Type>()),
            DataType::Int32 => run_bytes(array.as_run::<Int32Type>()),
            _ => run_bytes(array.as_run::<Int64Type>()),
        },
        _ => array.get_array_memory_size(),
    }
}

fn bytes_of(array: &ArrayRef) -> usize {
    slice_bytes(array.as_ref())
}

fn variable_bytes<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> usize {
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    (last - first).as_usize() + size_of_val(&offsets[..])
}

/// The views, and the text that is too long to stand in them.
const fn view_bytes(rows: usize, outside: usize) -> usize {
    rows * size_of::<u128>() + outside
}

fn list_bytes<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, items: &ArrayRef) -> usize {
    let first = offsets[0].as_usize();
    let last = offsets[offsets.len() - 1].as_usize();
    bytes_of(&items.slice(first, last - first)) + size_of_val(&offsets[..])
}

fn viewed_list_bytes<O: OffsetSizeTrait>(sizes: &[O], items: &ArrayRef) -> usize {
    let viewed = sizes.iter().map(|size| size.as_usize()).sum();
    share(items, viewed) + 2 * size_of_val(sizes)
}

fn union_bytes(array: &dyn Array, mode: UnionMode) -> usize {
    let union = array.as_union();
    let DataType::Union(fields, _) = union.data_type() else {
        return 0;
    };
    let child = |(id, _): (i8, _)| match mode {
        UnionMode::Sparse => bytes_of(union.child(id)),
        UnionMode::Dense => {
            let rows = union.type_ids().iter().filter(|&&of| of == id).count();
            share(union.child(id), rows) + rows * size_of::<i32>()
        }
    };
    union.len() + fields.iter().map(child).sum::<usize>()
}

fn dictionary_bytes(array: &dyn Array) -> usize {
    fn keys_bytes<K: ArrowDictionaryKeyType>(
        dictionary: &arrow::array::DictionaryArray<K>,
    ) -> usize {
        dictionary.len() * size_of::<K::Native>() + share(dictionary.values(), dictionary.len())
    }
    downcast_dictionary_array! {
        array => keys_bytes(array),
        _ => 0
    }
}

fn run_bytes<R: RunEndIndexType>(array: &RunArray<R>) -> usize {
    if array.is_empty() {
        return 0;
    }
    let first = array.get_start_physical_index();
    let runs = array.get_end_physical_index() + 1 - first;
    bytes_of(&array.values().slice(first, runs)) + runs * size_of::<R::Native>()
}

/// What so many of the values take, of which nobody says which they are: their part of all.
fn share(values: &ArrayRef, rows: usize) -> usize {
    let all = values.len();
    if all == 0 {
        return 0;
    }
    let bytes = bytes_of(values) as u128 * rows.min(all) as u128;
    usize::try_from(bytes.div_ceil(all as u128)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        DictionaryArray, Int32Array, Int64Array, ListArray, StringArray, StringViewArray,
    };
    use arrow::datatypes::Field;

    use super::*;

    /// A thousand texts of 100 bytes.
    fn texts() -> StringArray {
        StringArray::from_iter_values((0..1_000).map(|row| format!("{row:0100}")))
    }

    fn ten_of(array: &dyn Array) -> usize {
        slice_bytes(array.slice(500, 10).as_ref())
    }

    #[test]
    fn a_slice_counts_its_own_rows_and_not_the_buffers_behind_it() {
        let numbers = Int64Array::from_iter((0..1_000).map(|row| (row % 2 == 0).then_some(row)));
        assert_eq!(ten_of(&texts()), 10 * 100 + 11 * 4);
        assert_eq!(ten_of(&numbers), 10 * 8 + 2);
    }

    #[test]
    fn text_outside_of_views_is_counted() {
        let long: StringViewArray = texts().iter().collect();
        assert_eq!(ten_of(&long), 10 * 16 + 10 * 100);
        let short = StringViewArray::from_iter_values(["within"; 1_000]);
        assert_eq!(ten_of(&short), 10 * 16);
    }

    #[test]
    fn a_slice_of_lists_counts_their_items() {
        let item = Arc::new(Field::new("item", DataType::Utf8, true));
        let offsets = OffsetBuffer::from_lengths([2; 500]);
        let lists = ListArray::new(item, offsets, Arc::new(texts()), None);
        let ten = slice_bytes(&lists.slice(100, 10));
        assert_eq!(ten, (20 * 100 + 21 * 4) + 11 * 4);
    }

    #[test]
    fn rows_count_their_share_of_a_dictionary_and_never_more_than_all_of_it() {
        let values: ArrayRef = Arc::new(texts());
        let keys = Int32Array::from_iter_values((0..10_000).map(|row| row % 1_000));
        let dictionary = DictionaryArray::new(keys, Arc::clone(&values));
        let all = slice_bytes(values.as_ref());
        assert_eq!(ten_of(&dictionary), 10 * 4 + all.div_ceil(100));
        assert_eq!(slice_bytes(&dictionary), 10_000 * 4 + all);
    }

    #[test]
    fn a_slice_of_runs_counts_the_runs_that_it_is_in() {
        let ends = Int32Array::from_iter_values((1..=1_000).map(|run| run * 7));
        let runs = RunArray::try_new(&ends, &texts()).unwrap();
        // Rows 10 to 19 are in the runs that end at 14 and 21.
        let two = 2 * 100 + 3 * 4 + 2 * 4;
        assert_eq!(slice_bytes(&runs.slice(10, 10)), two);
        assert_eq!(slice_bytes(&runs.slice(10, 0)), 0);
    }
}
