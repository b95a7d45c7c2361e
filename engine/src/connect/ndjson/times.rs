//! Finds times that cannot be written as text: the encoder of JSON would write what is wrong
//! with them in their place.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::compute::{cast, max, min};
use arrow::datatypes::{DataType, Int64Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// Makes sure that all times of `batch` can be written.
///
/// # Errors
/// A sentence that names the column and the value.
pub(crate) fn require_times(batch: &RecordBatch) -> Result<(), String> {
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let refused = unwritable(column).map_err(|error| error.to_string())?;
        if let Some((value, data_type)) = refused {
            let name = field.name();
            return Err(format!(
                "the column `{name}` has the value {value}, which is out of the range of the \
                 calendar as {data_type}"
            ));
        }
    }
    Ok(())
}

/// A time in `column`, or within its values, that cannot be written.
fn unwritable(column: &ArrayRef) -> Result<Option<(i64, DataType)>, ArrowError> {
    let inner: Vec<ArrayRef> = match column.data_type() {
        DataType::Timestamp(_, _)
        | DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_) => return unwritable_extreme(column),
        DataType::Struct(_) => column.as_struct().columns().to_vec(),
        DataType::List(_) => vec![column.as_list::<i32>().values().clone()],
        DataType::LargeList(_) => vec![column.as_list::<i64>().values().clone()],
        DataType::ListView(_) => vec![column.as_list_view::<i32>().values().clone()],
        DataType::LargeListView(_) => vec![column.as_list_view::<i64>().values().clone()],
        DataType::FixedSizeList(_, _) => vec![column.as_fixed_size_list().values().clone()],
        DataType::Map(_, _) => column.as_map().entries().columns().to_vec(),
        DataType::Dictionary(_, _) => vec![column.as_any_dictionary().values().clone()],
        _ => Vec::new(),
    };
    for values in &inner {
        let found = unwritable(values)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The earliest or the latest time of `column`, if it cannot be written: where both can, all
/// between them can.
fn unwritable_extreme(column: &ArrayRef) -> Result<Option<(i64, DataType)>, ArrowError> {
    let narrow = match column.data_type() {
        DataType::Date32 | DataType::Time32(_) => DataType::Int32,
        _ => DataType::Int64,
    };
    let numbers = cast(&cast(column, &narrow)?, &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>();
    let extremes: Vec<i64> = [min(numbers), max(numbers)].into_iter().flatten().collect();
    let times = cast(&Int64Array::from(extremes.clone()), &narrow)?;
    let times = cast(&times, column.data_type())?;
    let options = FormatOptions::new().with_display_error(false);
    let texts = ArrayFormatter::try_new(&times, &options)?;
    let found = extremes
        .into_iter()
        .enumerate()
        .find(|(index, _)| texts.value(*index).try_to_string().is_err());
    Ok(found.map(|(_, value)| (value, column.data_type().clone())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, ListArray, Time32SecondArray, TimestampMillisecondArray};
    use arrow::datatypes::TimestampMillisecondType;

    use super::*;

    fn check(column: ArrayRef) -> Result<(), String> {
        require_times(&RecordBatch::try_from_iter([("at", column)]).unwrap())
    }

    #[test]
    fn times_of_every_kind_are_looked_at() {
        let good: [ArrayRef; 5] = [
            Arc::new(TimestampMillisecondArray::from(vec![
                None,
                Some(-5),
                Some(8_000_000_000),
            ])),
            Arc::new(TimestampMillisecondArray::from(vec![1, 2]).with_timezone("+02:00")),
            Arc::new(Date32Array::from(vec![-1, 20_000])),
            Arc::new(Time32SecondArray::from(vec![Some(86_399), None])),
            Arc::new(Int64Array::from(vec![i64::MAX])),
        ];
        for column in good {
            assert_eq!(check(column), Ok(()));
        }
        let list = vec![Some(vec![Some(1), Some(i64::MIN)])];
        let bad: [(ArrayRef, &str); 4] = [
            (
                Arc::new(TimestampMillisecondArray::from(vec![
                    Some(5),
                    Some(i64::MAX),
                    None,
                ])),
                "9223372036854775807",
            ),
            (Arc::new(Date32Array::from(vec![i32::MAX])), "2147483647"),
            (Arc::new(Time32SecondArray::from(vec![-1])), "-1"),
            (
                Arc::new(ListArray::from_iter_primitive::<
                    TimestampMillisecondType,
                    _,
                    _,
                >(list)),
                "-9223372036854775808",
            ),
        ];
        for (column, value) in bad {
            let reason = check(column).unwrap_err();
            let expected = format!("the column `at` has the value {value}, which is out of");
            assert!(reason.contains(&expected), "{reason}");
        }
    }
}
