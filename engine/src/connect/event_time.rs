//! Makes column 0 of what a source reads the event time.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, new_null_array,
};
use arrow::compute::max;
use arrow::datatypes::{
    DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};

use crate::batch::EVENT_TIME_COLUMN;
use crate::element::EventTime;

use crate::connect::ConnectError;

/// How the columns of a file become the columns of the stream: the column that holds the
/// event time moves to the front, is named `event_time` and becomes int64 milliseconds; the
/// others follow in their order.
#[derive(Clone, Debug)]
pub struct EventTimeLayout {
    /// Which column of the file holds the event time; none, and column 0 is all null.
    column: Option<usize>,
    schema: SchemaRef,
}

impl EventTimeLayout {
    /// The layout for files of `schema`. `column` names the column that holds the event time;
    /// without it that is the column `event_time` if there is one, and otherwise no row has
    /// an event time.
    ///
    /// # Errors
    /// [`ConnectError::Option`] when there is no such column, when its type is neither int64
    /// (read as milliseconds since the Unix epoch) nor a timestamp, or when another column is
    /// named `event_time` too.
    pub fn new(schema: &Schema, column: Option<&str>) -> Result<Self, ConnectError> {
        let name = column.unwrap_or(EVENT_TIME_COLUMN);
        let found = schema
            .fields()
            .iter()
            .position(|field| field.name() == name);
        if let (None, Some(name)) = (found, column) {
            return Err(event_time_error(format!(
                "there is no column `{name}`; the columns are {}",
                column_names(schema)
            )));
        }
        let mut fields = vec![Field::new(EVENT_TIME_COLUMN, DataType::Int64, true)];
        if let Some(index) = found {
            let field = schema.field(index);
            require_time_type(field)?;
            fields[0] = fields[0].clone().with_metadata(field.metadata().clone());
        }
        for (index, field) in schema.fields().iter().enumerate() {
            if Some(index) == found {
                continue;
            }
            if field.name() == EVENT_TIME_COLUMN {
                return Err(event_time_error(format!(
                    "`{name}` becomes the column `{EVENT_TIME_COLUMN}`, but there is another \
                     column of this name: read that one, or leave it out of the columns that \
                     are read (`columns` of Parquet, `schema` of text)"
                )));
            }
            fields.push(field.as_ref().clone());
        }
        Ok(Self {
            column: found,
            schema: Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
        })
    }

    /// The schema of the stream.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether a column of the file holds the event time.
    pub fn has_event_time(&self) -> bool {
        self.column.is_some()
    }

    /// A batch of the file as a batch of the stream.
    ///
    /// # Errors
    /// A sentence, when a timestamp does not fit into milliseconds, or the batch is not of
    /// the file's schema.
    pub fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch, String> {
        let rows = batch.num_rows();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        columns.push(match self.column {
            Some(index) => to_milliseconds(batch.column(index))?,
            None => new_null_array(&DataType::Int64, rows),
        });
        for (index, column) in batch.columns().iter().enumerate() {
            if Some(index) != self.column {
                columns.push(column.clone());
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|error| error.to_string())
    }
}

/// The latest event time in a batch of a stream, if any row has one.
pub(crate) fn latest_event_time(batch: &RecordBatch) -> Option<EventTime> {
    max(batch.column(0).as_primitive_opt::<Int64Type>()?)
}

/// A column of times as int64 milliseconds; finer times are rounded down, also before 1970.
///
/// # Errors
/// A sentence, when a time in seconds does not fit.
pub(crate) fn to_milliseconds(column: &ArrayRef) -> Result<ArrayRef, String> {
    let times: Int64Array = match column.data_type() {
        DataType::Int64 => return Ok(column.clone()),
        DataType::Timestamp(TimeUnit::Millisecond, _) => column
            .as_primitive::<TimestampMillisecondType>()
            .reinterpret_cast::<Int64Type>(),
        DataType::Timestamp(TimeUnit::Second, _) => column
            .as_primitive::<TimestampSecondType>()
            .try_unary(|seconds| {
                seconds
                    .checked_mul(1000)
                    .ok_or_else(|| format!("the time {seconds} s does not fit into milliseconds"))
            })?,
        DataType::Timestamp(TimeUnit::Microsecond, _) => column
            .as_primitive::<TimestampMicrosecondType>()
            .unary(|micros| micros.div_euclid(1000)),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => column
            .as_primitive::<TimestampNanosecondType>()
            .unary(|nanos| nanos.div_euclid(1_000_000)),
        other => return Err(format!("a column of type {other} holds no event time")),
    };
    Ok(Arc::new(times))
}

/// The names of the columns, for a message.
pub(crate) fn column_names(schema: &Schema) -> String {
    let names: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| format!("`{}`", field.name()))
        .collect();
    names.join(", ")
}

fn require_time_type(field: &Field) -> Result<(), ConnectError> {
    match field.data_type() {
        DataType::Int64 | DataType::Timestamp(_, _) => Ok(()),
        other => Err(event_time_error(format!(
            "the column `{}` is of type {other}; an event time is int64 (milliseconds since the \
             Unix epoch) or a timestamp",
            field.name()
        ))),
    }
}

fn event_time_error(reason: String) -> ConnectError {
    ConnectError::option("event_time", reason)
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        StringArray, TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray,
    };

    use super::*;

    fn batch(fields: Vec<Field>, columns: Vec<ArrayRef>) -> RecordBatch {
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }

    fn times(batch: &RecordBatch) -> Vec<Option<i64>> {
        batch.column(0).as_primitive::<Int64Type>().iter().collect()
    }

    #[test]
    fn event_time_moves_to_the_front_under_its_name() {
        let input = batch(
            vec![
                Field::new("a", DataType::Utf8, false),
                Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, None), true),
            ],
            vec![
                Arc::new(StringArray::from(vec!["x", "y", "z"])),
                Arc::new(TimestampMicrosecondArray::from(vec![
                    Some(1_999),
                    None,
                    Some(-1),
                ])),
            ],
        );
        let layout = EventTimeLayout::new(&input.schema(), Some("t")).unwrap();
        let output = layout.apply(&input).unwrap();
        assert_eq!(
            output.schema().field(0),
            &Field::new("event_time", DataType::Int64, true)
        );
        assert_eq!(output.schema().field(1).name(), "a");
        assert_eq!(times(&output), [Some(1), None, Some(-1)]);
        assert_eq!(latest_event_time(&output), Some(1));
    }

    #[test]
    fn every_unit_of_time_becomes_milliseconds() {
        let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![-2]));
        let nanos: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![-1_000_001]));
        assert_eq!(
            to_milliseconds(&seconds).unwrap().as_ref(),
            &Int64Array::from(vec![-2000])
        );
        assert_eq!(
            to_milliseconds(&nanos).unwrap().as_ref(),
            &Int64Array::from(vec![-2])
        );
        let far: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX]));
        assert!(to_milliseconds(&far).unwrap_err().contains("does not fit"));
    }

    #[test]
    fn without_an_event_time_column_no_row_has_one() {
        let input = batch(
            vec![Field::new("a", DataType::Int64, false)],
            vec![Arc::new(Int64Array::from(vec![7, 8]))],
        );
        let layout = EventTimeLayout::new(&input.schema(), None).unwrap();
        let output = layout.apply(&input).unwrap();
        assert_eq!(times(&output), [None, None]);
        assert_eq!(latest_event_time(&output), None);
        assert_eq!(output.num_columns(), 2);
    }

    #[test]
    fn a_column_that_cannot_be_the_event_time_is_refused_by_name() {
        let schema = Schema::new(vec![
            Field::new("event_time", DataType::Int64, true),
            Field::new("other", DataType::Int64, true),
            Field::new("text", DataType::Utf8, true),
        ]);
        let refused = |name| {
            EventTimeLayout::new(&schema, Some(name))
                .unwrap_err()
                .to_string()
        };
        assert!(refused("absent").contains("`event_time`, `other`, `text`"));
        assert!(refused("text").contains("`text` is of type Utf8"));
        assert!(refused("other").contains("another column of this name"));
    }
}
