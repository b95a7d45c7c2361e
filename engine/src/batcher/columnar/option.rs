//! Fields that may be absent.

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::field::{ColumnWriter, FieldType, Full, Required};
use super::live::{Live, Misfit};
use super::scalar::bit;

/// Gathers values of which some are absent.
#[doc(hidden)]
#[derive(Debug)]
pub struct OptionWriter<W>(W);

impl<E: Required> ColumnWriter<Option<E>> for OptionWriter<E::Writer> {
    fn with_capacity(rows: usize) -> Self {
        Self(E::Writer::with_capacity(rows))
    }

    #[inline]
    fn push(&mut self, value: &Option<E>) -> Result<(), Full> {
        match value {
            Some(value) => self.0.push(value),
            None => {
                self.0.push_null();
                Ok(())
            }
        }
    }

    fn push_null(&mut self) {
        self.0.push_null();
    }

    fn push_blank(&mut self) {
        self.0.push_blank();
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        self.0.finish()
    }
}

/// The values of a nullable column.
pub struct OptionColumn<'a, E: Required> {
    values: E::Column<'a>,
    nulls: Option<&'a NullBuffer>,
    rows: usize,
}

impl<'a, E: Required> OptionColumn<'a, E> {
    /// The values of all rows; what stands in the row of a null means nothing.
    pub fn values(&self) -> E::Column<'a> {
        self.values
    }

    /// Which rows have a value; all of them where there is no buffer.
    pub fn nulls(&self) -> Option<&'a NullBuffer> {
        self.nulls
    }

    /// The value of a row, if it has one.
    ///
    /// # Panics
    ///
    /// Where there is no such row.
    #[inline]
    pub fn value(&self, row: usize) -> Option<E::Ref<'a>> {
        assert!(row < self.rows, "row {row} of a column of {}", self.rows);
        self.at(row)
    }

    #[inline]
    fn at(&self, row: usize) -> Option<E::Ref<'a>> {
        let is_null = self.nulls.is_some_and(|nulls| !bit(nulls.inner(), row));
        (!is_null).then(|| E::at(&self.values, row))
    }
}

impl<E: Required> Clone for OptionColumn<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: Required> Copy for OptionColumn<'_, E> {}

impl<E: Required> FieldType for Option<E> {
    const NULLABLE: bool = true;
    const NESTED: bool = E::NESTED;
    type Writer = OptionWriter<E::Writer>;
    type Column<'a> = OptionColumn<'a, E>;
    type Ref<'a> = Option<E::Ref<'a>>;

    fn data_type() -> DataType {
        E::data_type()
    }

    fn column<'a>(array: &'a dyn Array, live: &Live) -> Result<OptionColumn<'a, E>, Misfit> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let values = match nulls {
            Some(nulls) if E::NESTED => E::column(array, &live.without(nulls)),
            _ => E::column(array, live),
        };
        Ok(OptionColumn {
            values: values?,
            nulls,
            rows: array.len(),
        })
    }

    #[inline]
    fn at<'a>(column: &Self::Column<'a>, row: usize) -> Self::Ref<'a> {
        column.at(row)
    }

    #[inline]
    fn owned(value: Option<E::Ref<'_>>) -> Self {
        value.map(E::owned)
    }
}
