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
