//! Between typed rows and columns: how a batch of `T` becomes a record batch and back.
//!
//! Every record batch that a batcher builds has `event_time` as column 0. The types of the
//! table below get a column each; any other type with a codec gets one binary column.
//!
//! | type | columns after `event_time` |
//! |---|---|
//! | `i64`, `i32`, `u32`, `u64`, `String` | `value` |
//! | `(i64, i64)`, `(String, i64)` | `key`, `value` |
//! | a struct that derives [`Columnar`] | one for each field, under its name |
//! | any other [`Coded`] type | `value_bytes` |
//!
//! An operator that need not own its rows reads them through a [`View`] instead.

mod binary;
mod builtin;
mod codec;
mod columnar;
mod error;
mod scalar;
mod schema;
mod views;

#[cfg(test)]
pub(crate) mod properties;

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::batch::Rows;

pub use binary::{BinaryBatcher, VALUE_BYTES_COLUMN};
pub use builtin::{KEY_COLUMN, PairBatcher, VALUE_COLUMN, ValueBatcher};
pub use codec::{Codec, CodecError, Coded, Plain};
#[cfg(feature = "serde_arrow")]
pub use columnar::SerdeBatcher;
#[doc(hidden)]
pub use columnar::derive_support;
pub use columnar::{
    Columnar, ColumnarBatcher, ColumnarView, FieldType, KeyType, ListColumn, ListRef, MapColumn,
    MapRef, OptionColumn, Required,
};
pub use error::BatchError;
pub use ringway_derive::Columnar;
pub use scalar::Scalar;
pub use schema::check_schema;
pub use views::{BytesView, PairView, ValueView, View, Viewed, view};

/// Turns typed rows into a record batch of one fixed schema, and back.
///
/// `parse` of `build` is the identity, and `build` always gives the schema that `schema`
/// says, for an empty batch too.
pub trait Batcher<T>: Send + Sync {
    /// The schema of every batch that `build` gives and `parse` takes.
    fn schema(&self) -> SchemaRef;

    /// The rows as columns.
    ///
    /// # Errors
    ///
    /// [`BatchError::TooLarge`] where a column can't hold the values: build fewer rows at once.
    /// [`BatchError::Codec`] where a value has no encoding: correct or drop the value.
    fn build(&self, rows: &Rows<T>) -> Result<RecordBatch, BatchError>;

    /// The columns as rows.
    ///
    /// # Errors
    ///
    /// [`BatchError::Schema`] where the batch has another schema: the two ends of the edge
    /// disagree on the type. [`BatchError::Null`] and [`BatchError::Codec`] where a row holds
    /// no value of the type: what sent the batch is at fault.
    fn parse(&self, batch: &RecordBatch) -> Result<Rows<T>, BatchError>;
}

/// A type that says which batcher it has when nobody names one.
pub trait Batchable: Sized + 'static {
    /// The batcher of this type.
    fn batcher() -> Arc<dyn Batcher<Self>>;
}

/// The batcher to use for `T`: the explicit one if there is one, else that of the type.
///
/// This is the only place where the choice is made.
pub fn choose_batcher<T: Batchable>(explicit: Option<Arc<dyn Batcher<T>>>) -> Arc<dyn Batcher<T>> {
    explicit.unwrap_or_else(T::batcher)
}

macro_rules! one_column {
    ($($type:ty),*) => {$(
        impl Batchable for $type {
            fn batcher() -> Arc<dyn Batcher<Self>> {
                Arc::new(ValueBatcher::<Self>::new())
            }
        }
    )*};
}

macro_rules! value_bytes {
    ($($type:ty),*) => {$(
        impl Batchable for $type {
            fn batcher() -> Arc<dyn Batcher<Self>> {
                Arc::new(BinaryBatcher::<Self>::plain())
            }
        }
    )*};
}

one_column!(i32, i64, u32, u64, String);
value_bytes!(i8, i16, u16, f32, f64, bool);

impl<T: 'static> Batchable for Vec<T>
where
    Vec<T>: Coded,
{
    fn batcher() -> Arc<dyn Batcher<Self>> {
        Arc::new(BinaryBatcher::plain())
    }
}

impl<T: Coded + 'static> Batchable for Option<T> {
    fn batcher() -> Arc<dyn Batcher<Self>> {
        Arc::new(BinaryBatcher::plain())
    }
}

impl<K: Coded + Ord + 'static, V: Coded + 'static> Batchable for BTreeMap<K, V> {
    fn batcher() -> Arc<dyn Batcher<Self>> {
        Arc::new(BinaryBatcher::plain())
    }
}

/// Two pairs have columns of their own, and all others are bytes. One implementation has to
/// serve both, so it asks which pair it is.
impl<A: Coded + 'static, B: Coded + 'static> Batchable for (A, B) {
    fn batcher() -> Arc<dyn Batcher<Self>> {
        keyed_batcher::<i64, Self>()
            .or_else(keyed_batcher::<String, Self>)
            .unwrap_or_else(|| Arc::new(BinaryBatcher::plain()))
    }
}

/// The batcher of `(K, i64)`, if that is what `P` is.
fn keyed_batcher<K: Scalar, P: 'static>() -> Option<Arc<dyn Batcher<P>>> {
    if TypeId::of::<P>() != TypeId::of::<(K, i64)>() {
        return None;
    }
    let batcher: Arc<dyn Batcher<(K, i64)>> = Arc::new(PairBatcher::<K, i64>::new());
    (&batcher as &dyn Any).downcast_ref().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns<T: Batchable>() -> Vec<String> {
        let schema = choose_batcher::<T>(None).schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.collect()
    }

    #[test]
    fn the_two_keyed_pairs_have_columns_and_other_pairs_are_bytes() {
        assert_eq!(columns::<(i64, i64)>(), ["event_time", "key", "value"]);
        assert_eq!(columns::<(String, i64)>(), ["event_time", "key", "value"]);
        assert_eq!(columns::<(i64, String)>(), ["event_time", "value_bytes"]);
        assert_eq!(columns::<(u64, i64)>(), ["event_time", "value_bytes"]);
        assert_eq!(
            columns::<((i64, i64), i64)>(),
            ["event_time", "value_bytes"]
        );
    }

    #[test]
    fn an_explicit_batcher_overrides_that_of_the_type() {
        let explicit: Arc<dyn Batcher<i64>> = Arc::new(BinaryBatcher::plain());
        let chosen = choose_batcher(Some(explicit));
        assert_eq!(chosen.schema().field(1).name(), VALUE_BYTES_COLUMN);
        assert_eq!(columns::<i64>(), ["event_time", "value"]);
    }

    #[test]
    fn containers_without_columns_are_bytes() {
        for names in [
            columns::<Vec<u8>>(),
            columns::<Vec<String>>(),
            columns::<Option<i64>>(),
            columns::<BTreeMap<String, i64>>(),
            columns::<f64>(),
        ] {
            assert_eq!(names, ["event_time", "value_bytes"]);
        }
    }
}
