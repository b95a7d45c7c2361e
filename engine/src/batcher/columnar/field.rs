//! What a type must be able to do to be a field of a columnar struct.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use super::live::{Live, Misfit};

/// A type that a field of a [`Columnar`](super::Columnar) struct may have.
///
/// | type | column | borrowed value |
/// |---|---|---|
/// | `i8` to `i64`, `u8` to `u64` | the integer of that width | the number |
/// | `f32`, `f64` | float32, float64 | the number |
/// | `bool` | boolean | the value |
/// | `String` | utf8 | `&str` |
/// | `Option<E>` | that of `E`, nullable | `Option` of that of `E` |
/// | `Vec<E>` | list with child `item`, nullable if `E` is an option | [`ListRef`](super::ListRef) |
/// | `BTreeMap<K, V>` | map, its `value` nullable | [`MapRef`](super::MapRef) |
/// | a struct that derives `Columnar` | struct | the derived `…Ref` |
///
/// It is implemented for these and for no other type. What it consists of serves the derived
/// code and may change.
#[diagnostic::on_unimplemented(
    message = "a value of type `{Self}` has no column",
    label = "a field of this type has no column",
    note = "a field is an integer of 8 to 64 bits, `f32`, `f64`, `bool`, `String`, `Option<E>`, \
            `Vec<E>`, `BTreeMap<K, V>`, or a struct that derives `Columnar`"
)]
pub trait FieldType: Sized + Send + Sync + 'static {
    /// Whether the column may hold nulls.
    #[doc(hidden)]
    const NULLABLE: bool = false;

    /// Whether there are columns within the column.
    #[doc(hidden)]
    const NESTED: bool = false;

    /// What gathers the values of a column.
    #[doc(hidden)]
    type Writer: ColumnWriter<Self>;

    /// The values of a column, borrowed.
    type Column<'a>: Copy;

    /// One value, borrowed where it is more than a number.
    type Ref<'a>: Copy + Debug + PartialEq;

    /// The type of the column.
    fn data_type() -> DataType;

    /// The values of an array, after checking that those of the rows that count are values of
    /// this type. Whether the array itself holds nulls has been checked before.
    #[doc(hidden)]
    fn column<'a>(array: &'a dyn Array, live: &Live) -> Result<Self::Column<'a>, Misfit>;

    /// The value of a row that counts, which must be one of the column: beyond it there is a
    /// value that means nothing, or a panic.
    fn at<'a>(column: &Self::Column<'a>, row: usize) -> Self::Ref<'a>;

    /// A value of one's own.
    fn owned(value: Self::Ref<'_>) -> Self;

    /// Values of one's own of adjacent rows that count.
    #[doc(hidden)]
    fn owned_range(column: &Self::Column<'_>, rows: Range<usize>) -> Vec<Self> {
        rows.map(|row| Self::owned(Self::at(column, row))).collect()
    }
}

/// A field type that can be made optional, which is any but an option.
#[diagnostic::on_unimplemented(
    message = "`Option<{Self}>` has no column",
    label = "an option of this type has no column",
    note = "a column tells null from a value, and has no third state for an option of an option"
)]
pub trait Required: FieldType {}

/// A field type that can be the key of a map: an integer, `bool` or `String`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the key of a map column",
    label = "a map column has no keys of this type",
    note = "a key is an integer of 8 to 64 bits, `bool` or `String`"
)]
pub trait KeyType: Required + Ord {
    /// How two keys are ordered in a `BTreeMap`.
    #[doc(hidden)]
    fn compare(a: Self::Ref<'_>, b: Self::Ref<'_>) -> Ordering;
}

/// A column can't hold the value with this index among those that were given.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    pub index: usize,
}

impl Full {
    /// The only value that was given.
    pub(super) const ONLY: Self = Self { index: 0 };
}

/// Gathers the values of a column. After a [`Full`] it is of no use.
#[doc(hidden)]
pub trait ColumnWriter<T> {
    fn with_capacity(rows: usize) -> Self;

    fn push(&mut self, value: &T) -> Result<(), Full>;

    /// Appends a null, over zeros.
    fn push_null(&mut self);

    /// Appends the zero of the type, for a row that is null further out.
    fn push_blank(&mut self);

    fn extend<'r>(
        &mut self,
        values: impl ExactSizeIterator<Item = &'r T> + Clone,
    ) -> Result<(), Full>
    where
        T: 'r,
    {
        for (index, value) in values.enumerate() {
            self.push(value).map_err(|_| Full { index })?;
        }
        Ok(())
    }

    fn finish(self) -> Result<ArrayRef, ArrowError>;
}
