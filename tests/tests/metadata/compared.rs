//! What came out, compared with what went in.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::batches::{CARRIED, ID, Input};

/// What came out of a way.
pub(crate) struct Arrived {
    pub(crate) batches: Vec<RecordBatch>,
    /// By how many columns the input's stand further behind.
    pub(crate) shift: usize,
    /// The ids of all rows that must come, in any order; `None` for a row of nulls.
    pub(crate) ids: Vec<Option<i64>>,
    /// Whether the fields may be nullable now.
    pub(crate) nullable: bool,
    /// Whether runs have become the values that they are runs of.
    pub(crate) without_runs: bool,
}

impl Arrived {
    /// The columns of the input in their places, in rows of these ids.
    pub(crate) fn of(batches: Vec<RecordBatch>, ids: impl IntoIterator<Item = i64>) -> Self {
        Self {
            batches,
            shift: 0,
            ids: ids.into_iter().map(Some).collect(),
            nullable: false,
            without_runs: false,
        }
    }
}

/// Everything that is not as it was.
pub(crate) fn differences(input: &Input, arrived: &Arrived) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    let expected: Vec<Vec<(i64, String)>> = columns_of(&input.batches, ID, CARRIED);
    let expected: Vec<(i64, String)> = expected.concat();
    let mut ids = Vec::new();
    for batch in &arrived.batches {
        found.extend(fields(input, arrived, batch));
        let id = batch.column(arrived.shift + ID).as_primitive::<Int64Type>();
        let texts = texts(batch.column(arrived.shift + CARRIED));
        for (row, text) in texts.into_iter().enumerate() {
            let id = id.is_valid(row).then(|| id.value(row));
            ids.push(id);
            let was = expected.iter().find(|(of, _)| Some(*of) == id);
            let was = was.map_or("", |(_, text)| text);
            // A union has no nulls of its own: its first child has.
            let is_null_union = id.is_none() && text == "{number=}";
            if text != was && !is_null_union {
                found.push(format!("row {id:?} was {was}, is {text}"));
            }
        }
    }
    ids.sort_unstable();
    let mut wanted = arrived.ids.clone();
    wanted.sort_unstable();
    if ids != wanted {
        found.push(format!("rows {wanted:?} were to come, not {ids:?}"));
    }
    found.into_iter()
}

fn fields(input: &Input, arrived: &Arrived, batch: &RecordBatch) -> Vec<String> {
    let schema = batch.schema();
    let mut found = Vec::new();
    if schema.metadata() != input.schema.metadata() {
        found.push(format!("the schema's metadata is {:?}", schema.metadata()));
    }
    for (position, was) in input.schema.fields().iter().enumerate() {
        let is = schema.field(arrived.shift + position);
        let nullable = was.is_nullable() || (arrived.nullable && is.is_nullable());
        let mut was = Field::clone(was).with_nullable(nullable);
        if arrived.without_runs {
            was = plain(&was);
        }
        if *is != was {
            found.push(format!("the field was {was:?}, is {is:?}"));
        }
    }
    found
}

/// The field with values in place of runs, at any depth.
fn plain(field: &Field) -> Field {
    let inner = |field: &Arc<Field>| Arc::new(plain(field));
    let data_type = match field.data_type() {
        DataType::RunEndEncoded(_, values) => values.data_type().clone(),
        DataType::List(item) => DataType::List(inner(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

fn columns_of(batches: &[RecordBatch], id: usize, column: usize) -> Vec<Vec<(i64, String)>> {
    let pairs = |batch: &RecordBatch| {
        let ids = batch
            .column(id)
            .as_primitive::<Int64Type>()
            .values()
            .to_vec();
        ids.into_iter().zip(texts(batch.column(column))).collect()
    };
    batches.iter().map(pairs).collect()
}

fn texts(array: &dyn Array) -> Vec<String> {
    let options = FormatOptions::new().with_null("");
    let formatter = ArrayFormatter::try_new(array, &options).unwrap();
    (0..array.len())
        .map(|row| formatter.value(row).to_string())
        .collect()
}
