//! Fields that are structs.

use std::sync::Arc;

use arrow::array::builder::NullBufferBuilder;
use arrow::array::{Array, ArrayRef, StructArray};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::Columnar;
use super::field::{ColumnWriter, FieldType, Full, Required};
use super::live::{Live, Misfit, typed};

/// Gathers structs, each field in a column of its own.
#[doc(hidden)]
pub struct StructWriter<T: Columnar> {
    fields: T::Writers,
    nulls: NullBufferBuilder,
}

impl<T: Columnar> ColumnWriter<T> for StructWriter<T> {
    fn with_capacity(rows: usize) -> Self {
        Self {
            fields: T::writers(rows),
            nulls: NullBufferBuilder::new(rows),
        }
    }

    #[inline]
    fn push(&mut self, value: &T) -> Result<(), Full> {
        self.nulls.append_non_null();
        T::push(&mut self.fields, value)
    }

    fn push_null(&mut self) {
        self.nulls.append_null();
        T::push_blank(&mut self.fields);
    }

    fn push_blank(&mut self) {
        self.nulls.append_non_null();
        T::push_blank(&mut self.fields);
    }

    #[inline]
    fn extend<'r>(
        &mut self,
        values: impl ExactSizeIterator<Item = &'r T> + Clone,
    ) -> Result<(), Full> {
        self.nulls.append_n_non_nulls(values.len());
        T::extend(&mut self.fields, values)
    }

    fn finish(mut self) -> Result<ArrayRef, ArrowError> {
        let fields = T::layout().fields().clone();
        let columns = T::finish(self.fields)?;
        let structs = StructArray::try_new(fields, columns, self.nulls.finish())?;
        Ok(Arc::new(structs))
    }
}

impl<T: Columnar> FieldType for T {
    const NESTED: bool = true;
    type Writer = StructWriter<T>;
    type Column<'a> = T::Columns<'a>;
    type Ref<'a> = T::RowRef<'a>;

    fn data_type() -> DataType {
        DataType::Struct(T::layout().fields().clone())
    }

    fn column<'a>(array: &'a dyn Array, live: &Live) -> Result<T::Columns<'a>, Misfit> {
        T::columns(typed::<StructArray>(array)?.columns(), live)
    }

    #[inline]
    fn at<'a>(column: &T::Columns<'a>, row: usize) -> T::RowRef<'a> {
        T::row(column, row)
    }

    #[inline]
    fn owned(value: T::RowRef<'_>) -> T {
        T::from_row(value)
    }
}

impl<T: Columnar> Required for T {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow::array::{Int32Array, ListArray};
    use arrow::buffer::{NullBuffer, OffsetBuffer};
    use arrow::datatypes::{Field, Fields};

    use super::super::live::child;
    use super::*;
    use crate::batcher::BatchError;

    #[derive(Clone, Debug, PartialEq, crate::batcher::Columnar)]
    struct Inner {
        number: i32,
        text: Option<String>,
    }

    #[derive(Clone, Debug, PartialEq, crate::batcher::Columnar)]
    struct Outer {
        inner: Option<Inner>,
        lists: Vec<Option<Vec<Inner>>>,
        map: BTreeMap<u8, Inner>,
    }

    /// The first null of a column where none may be, as its row and the names that lead to it.
    fn first_null<E: FieldType>(array: ArrayRef) -> Option<(usize, String)> {
        let arrays = [array];
        match child::<E>(&arrays, 0, "c", &Live::all(arrays[0].len())) {
            Ok(_) => None,
            Err(misfit) => match misfit.into_error(0) {
                BatchError::Null { column: 0, row } => Some((row, "c".into())),
                BatchError::NullWithin { row, field, .. } => Some((row, field)),
                other => panic!("{other}"),
            },
        }
    }

    /// Structs whose field is nullable, as no peer should send them.
    fn structs(numbers: Vec<Option<i32>>, nulls: Option<Vec<bool>>) -> ArrayRef {
        let fields = vec![
            Field::new("number", DataType::Int32, true),
            Field::new("text", DataType::Utf8, true),
        ];
        let texts = arrow::array::StringArray::new_null(numbers.len());
        let columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(numbers)), Arc::new(texts)];
        let nulls = nulls.map(NullBuffer::from);
        Arc::new(StructArray::new(Fields::from(fields), columns, nulls))
    }

    fn lists(items: ArrayRef, lengths: [usize; 3], nulls: Option<Vec<bool>>) -> ArrayRef {
        let item = Field::new("item", items.data_type().clone(), true);
        let offsets = OffsetBuffer::from_lengths(lengths);
        let nulls = nulls.map(NullBuffer::from);
        Arc::new(ListArray::new(Arc::new(item), offsets, items, nulls))
    }

    #[test]
    fn a_null_in_a_struct_counts_only_where_the_struct_is() {
        let numbers = vec![Some(1), None, None];
        let all = structs(numbers.clone(), None);
        assert_eq!(first_null::<Inner>(all), Some((1, "c.number".into())));
        let some = structs(numbers.clone(), Some(vec![true, false, true]));
        let found = first_null::<Option<Inner>>(some.clone());
        assert_eq!(found, Some((2, "c.number".into())));
        assert_eq!(first_null::<Inner>(some), Some((1, "c".into())));
        let none = structs(numbers, Some(vec![true, false, false]));
        assert_eq!(first_null::<Option<Inner>>(none), None);
    }

    #[test]
    fn a_null_in_a_list_is_named_by_the_row_of_the_list() {
        type Lists = Vec<Inner>;
        let numbers = vec![Some(1), Some(2), None, Some(4), None];
        let of = |lengths, nulls| lists(structs(numbers.clone(), None), lengths, nulls);
        let place = |row| Some((row, "c.item.number".to_string()));
        assert_eq!(first_null::<Lists>(of([2, 0, 3], None)), place(2));
        assert_eq!(first_null::<Lists>(of([1, 2, 2], None)), place(1));
        let hidden = Some(vec![true, false, true]);
        let found = first_null::<Option<Lists>>(of([2, 2, 1], hidden.clone()));
        assert_eq!(found, place(2));
        assert_eq!(first_null::<Option<Lists>>(of([2, 1, 1], hidden)), None);
        // What no list holds is nobody's.
        assert_eq!(first_null::<Lists>(of([1, 1, 0], None)), None);
        assert_eq!(first_null::<Lists>(of([2, 1, 1], None).slice(2, 1)), None);
    }

    #[test]
    fn the_fields_of_a_struct_that_is_null_are_zeros_and_no_nulls() {
        let mut writer = StructWriter::<Outer>::with_capacity(2);
        writer.push_null();
        writer.push_blank();
        let array = writer.finish().unwrap();
        let structs = array.as_any().downcast_ref::<StructArray>().unwrap();
        assert_eq!(structs.null_count(), 1);
        assert!(
            structs
                .columns()
                .iter()
                .all(|column| column.nulls().is_none())
        );
        let inner = structs.column(0).as_any().downcast_ref::<StructArray>();
        assert!(inner.unwrap().column(0).nulls().is_none());
    }
}
