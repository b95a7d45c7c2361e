//! Structs of a user's own as columns: what `#[derive(Columnar)]` implements, and what it is
//! built on.

#[cfg(feature = "serde_arrow")]
mod by_serde;
#[cfg(doctest)]
mod examples;
mod field;
mod list;
mod live;
mod map;
mod nested;
mod option;
mod scalar;
mod view;

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::builtin::event_time_array;
use super::scalar::COLUMN_BYTES_MAX;
use super::{BatchError, Batcher};
use crate::batch::{EVENT_TIME_COLUMN, Row, Rows};

#[cfg(feature = "serde_arrow")]
pub use by_serde::SerdeBatcher;
pub use field::{FieldType, KeyType, Required};
pub use list::{ListColumn, ListRef};
pub use map::{MapColumn, MapRef};
pub use option::OptionColumn;
pub use view::ColumnarView;

/// What the derived code names, and nobody else should.
#[doc(hidden)]
pub mod derive_support {
    pub use super::field::{ColumnWriter, FieldType, Full};
    pub use super::live::{Live, Misfit, child};
    pub use super::{Columnar, ColumnarBatcher, ColumnarView, Layout};
    pub use crate::batcher::{Batchable, Batcher, Viewed};
    pub use arrow::array::ArrayRef;
    pub use arrow::error::ArrowError;
}

/// A struct whose fields are columns.
///
/// It is implemented by `#[derive(Columnar)]`, which documents what a struct may look like.
/// The methods serve the derived code and may change.
#[diagnostic::on_unimplemented(
    message = "a value of type `{Self}` has no column",
    label = "a field of this type has no column",
    note = "a field is an integer of 8 to 64 bits, `f32`, `f64`, `bool`, `String`, `Option<E>`, \
            `Vec<E>`, `BTreeMap<K, V>`, or a struct that derives `Columnar`"
)]
pub trait Columnar: Sized + Send + Sync + 'static {
    /// The columns of the fields, borrowed from a batch, each under the name of its field.
    type Columns<'a>: Copy;

    /// A value, borrowed from a batch, each field under its name.
    type RowRef<'a>: Copy + Debug + PartialEq;

    /// What gathers the values of each field.
    #[doc(hidden)]
    type Writers;

    /// Names and types of the columns.
    #[doc(hidden)]
    fn layout() -> &'static Layout;

    #[doc(hidden)]
    fn writers(rows: usize) -> Self::Writers;

    #[doc(hidden)]
    fn push(writers: &mut Self::Writers, value: &Self) -> Result<(), field::Full>;

    #[doc(hidden)]
    fn push_blank(writers: &mut Self::Writers);

    #[doc(hidden)]
    fn extend<'r>(
        writers: &mut Self::Writers,
        values: impl ExactSizeIterator<Item = &'r Self> + Clone,
    ) -> Result<(), field::Full>;

    #[doc(hidden)]
    fn finish(writers: Self::Writers) -> Result<Vec<ArrayRef>, ArrowError>;

    #[doc(hidden)]
    fn columns<'a>(
        arrays: &'a [ArrayRef],
        live: &live::Live,
    ) -> Result<Self::Columns<'a>, live::Misfit>;

    #[doc(hidden)]
    fn row<'a>(columns: &Self::Columns<'a>, row: usize) -> Self::RowRef<'a>;

    #[doc(hidden)]
    fn from_row(row: Self::RowRef<'_>) -> Self;
}

/// Names and types of the columns of a struct.
#[doc(hidden)]
#[derive(Debug)]
pub struct Layout {
    fields: Fields,
    schema: SchemaRef,
}

impl Layout {
    /// The layout of the given fields, in order.
    pub fn of(fields: Vec<Field>) -> Self {
        let fields = Fields::from(fields);
        let event_time = Arc::new(Field::new(EVENT_TIME_COLUMN, DataType::Int64, true));
        let columns = std::iter::once(event_time).chain(fields.iter().cloned());
        let schema = Arc::new(Schema::new(columns.collect::<Fields>()));
        Self { fields, schema }
    }

    /// A field of a layout.
    pub fn field<E: FieldType>(name: &str) -> Field {
        Field::new(name, E::data_type(), E::NULLABLE)
    }

    /// The fields of the struct.
    pub(super) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The schema of a batch: `event_time`, and the fields.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

/// The batcher of structs that derive [`Columnar`]: `event_time`, and one column per field.
#[derive(Debug)]
pub struct ColumnarBatcher<T>(PhantomData<fn() -> T>);

impl<T: Columnar> ColumnarBatcher<T> {
    /// The batcher; all of one type are alike.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Columnar> Default for ColumnarBatcher<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Columnar> Batcher<T> for ColumnarBatcher<T> {
    fn schema(&self) -> SchemaRef {
        T::layout().schema().clone()
    }

    fn build(&self, rows: &Rows<T>) -> Result<RecordBatch, BatchError> {
        let mut writers = T::writers(rows.len());
        let values = rows.iter().map(|row| &row.value);
        T::extend(&mut writers, values).map_err(|full| BatchError::TooLarge {
            row: full.index,
            bytes_max: COLUMN_BYTES_MAX,
        })?;
        let mut columns = vec![event_time_array(rows)];
        columns.extend(T::finish(writers)?);
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }

    fn parse(&self, batch: &RecordBatch) -> Result<Rows<T>, BatchError> {
        use super::View;
        let view = ColumnarView::<T>::of(batch)?;
        let rows = (0..view.len()).map(|row| Row {
            value: T::from_row(view.get(row)),
            event_time: view.event_time(row),
        });
        Ok(rows.collect())
    }
}
