//! Structs that can't derive `Columnar`, because they are another crate's: serde has them.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, SchemaRef};
use arrow::error::ArrowError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_arrow::schema::{SchemaLike, TracingOptions};

use super::Layout;
use crate::batch::{EVENT_TIME_COLUMN, Row, Rows};
use crate::batcher::builtin::event_time_array;
use crate::batcher::{BatchError, Batcher, check_schema};

/// The batcher of a struct that serde can take apart: `event_time`, and one column per field.
///
/// It takes several times as long as that of a struct that derives
/// [`Columnar`](crate::batcher::Columnar), and is never chosen by itself: give it to
/// [`choose_batcher`](crate::batcher::choose_batcher). Available with the feature `serde_arrow`.
pub struct SerdeBatcher<T> {
    layout: Layout,
    value: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> SerdeBatcher<T> {
    /// The batcher with the columns that the fields of the type call for. They are those of the
    /// derive for the same fields, where that has any.
    ///
    /// # Errors
    ///
    /// [`BatchError::Arrow`] where the type does not tell its columns, as it holds values of any
    /// kind, is no struct, or has a field `event_time`: say the columns with
    /// [`SerdeBatcher::of_fields`], or rename the field.
    pub fn traced() -> Result<Self, BatchError> {
        let options = TracingOptions::default()
            .map_as_struct(false)
            .sequence_as_large_list(false)
            .strings_as_large_utf8(false)
            .bytes_as_large_binary(false)
            .enums_without_data_as_strings(true);
        let fields = Vec::<FieldRef>::from_type::<T>(options).map_err(refused)?;
        Self::of_fields(fields.iter().map(conventional).collect())
    }

    /// The batcher with these columns behind `event_time`.
    ///
    /// # Errors
    ///
    /// [`BatchError::Arrow`] where a field is named `event_time`: rename it.
    pub fn of_fields(fields: Vec<FieldRef>) -> Result<Self, BatchError> {
        if fields.iter().any(|field| field.name() == EVENT_TIME_COLUMN) {
            let message = "a field is named `event_time`, as column 0 is: rename it";
            return Err(ArrowError::SchemaError(message.into()).into());
        }
        let fields = fields.iter().map(|field| (**field).clone()).collect();
        Ok(Self {
            layout: Layout::of(fields),
            value: PhantomData,
        })
    }
}

impl<T> fmt::Debug for SerdeBatcher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SerdeBatcher").field(&self.layout).finish()
    }
}

impl<T: Serialize + DeserializeOwned> Batcher<T> for SerdeBatcher<T> {
    fn schema(&self) -> SchemaRef {
        self.layout.schema().clone()
    }

    fn build(&self, rows: &Rows<T>) -> Result<RecordBatch, BatchError> {
        let values: Vec<&T> = rows.iter().map(|row| &row.value).collect();
        let mut columns = vec![event_time_array(rows)];
        let fields = serde_arrow::to_arrow(self.layout.fields(), &values);
        columns.extend(fields.map_err(refused)?);
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }

    fn parse(&self, batch: &RecordBatch) -> Result<Rows<T>, BatchError> {
        check_schema(batch.schema_ref(), self.layout.schema())?;
        let (event_times, fields) = batch.columns().split_at(1);
        let event_times = super::live::typed::<arrow::array::Int64Array>(&event_times[0])
            .map_err(|misfit| misfit.into_error(0))?;
        let values: Vec<T> =
            serde_arrow::from_arrow(self.layout.fields(), fields).map_err(refused)?;
        let rows = event_times.iter().zip(values);
        Ok(rows
            .map(|(event_time, value)| Row { value, event_time })
            .collect())
    }
}

/// A traced field under the names and with the nullability that all batchers use.
fn conventional(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::List(item) => {
            let item = (*conventional(item)).clone().with_name("item");
            DataType::List(Arc::new(item))
        }
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(conventional).collect()),
        DataType::Map(entries, _) => DataType::Map(conventional_entries(entries), false),
        other => other.clone(),
    };
    let field = Field::new(field.name(), data_type, field.is_nullable())
        .with_metadata(field.metadata().clone());
    Arc::new(field)
}

fn conventional_entries(entries: &FieldRef) -> FieldRef {
    let entries = conventional(entries);
    let DataType::Struct(fields) = entries.data_type() else {
        return entries;
    };
    let fields = fields.iter().enumerate().map(|(at, field)| {
        // The key comes first, and may not be null; a value always may.
        Arc::new((**field).clone().with_nullable(at > 0))
    });
    let fields: Fields = fields.collect();
    Arc::new(Field::new(entries.name(), DataType::Struct(fields), false))
}

fn refused(error: serde_arrow::Error) -> BatchError {
    ArrowError::ExternalError(Box::new(error)).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;
    use crate::batcher::{Columnar, choose_batcher};

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Columnar)]
    struct Both {
        number: i32,
        text: String,
        real: Option<f64>,
        flag: bool,
        list: Vec<Option<i64>>,
        map: BTreeMap<String, i64>,
        inner: Inner,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Columnar)]
    struct Inner {
        small: u8,
        texts: Vec<String>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Side {
        Buy,
        Sell,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Foreign {
        side: Side,
        letter: char,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Taken {
        event_time: i64,
    }

    fn rows() -> Rows<Both> {
        let filled = Both {
            number: i32::MIN,
            text: "漢\0".into(),
            real: Some(0.5),
            flag: true,
            list: vec![Some(1), None],
            map: [("a".into(), 1), ("b".into(), i64::MAX)].into(),
            inner: Inner {
                small: 255,
                texts: vec![String::new()],
            },
        };
        Rows::from(vec![Row::at(7, filled), Row::untimed(Both::default())])
    }

    #[test]
    fn a_traced_struct_has_the_columns_of_the_derive_and_both_read_each_other() {
        let traced = SerdeBatcher::<Both>::traced().unwrap();
        let derived = choose_batcher::<Both>(None);
        assert!(check_schema(&traced.schema(), &derived.schema()).is_ok());
        for rows in [rows(), Rows::new()] {
            let batch = traced.build(&rows).unwrap();
            assert_eq!(batch.schema(), traced.schema());
            assert_eq!(traced.parse(&batch).unwrap(), rows);
            assert_eq!(derived.parse(&batch).unwrap(), rows);
            let batch = derived.build(&rows).unwrap();
            assert_eq!(traced.parse(&batch).unwrap(), rows);
        }
    }

    #[test]
    fn types_that_the_derive_refuses_come_back() {
        let value = |side| Foreign { side, letter: 'é' };
        let rows = Rows::from(vec![
            Row::at(1, value(Side::Sell)),
            Row::untimed(value(Side::Buy)),
        ]);
        let batcher = SerdeBatcher::traced().unwrap();
        let batch = batcher.build(&rows).unwrap();
        assert_eq!(batcher.parse(&batch).unwrap(), rows);
    }

    #[test]
    fn a_field_of_the_name_of_column_0_and_another_schema_are_refused() {
        assert!(SerdeBatcher::<Taken>::traced().is_err());
        assert!(SerdeBatcher::<i64>::traced().is_err());
        let batch = choose_batcher(None).build(&rows()).unwrap();
        let other = SerdeBatcher::<Foreign>::traced().unwrap().parse(&batch);
        assert!(matches!(other, Err(BatchError::Schema { column: 1, .. })));
    }
}
