//! Batches that hold no struct of the type are refused, with the place.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, MapArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields, Schema};
use ringway::batch::Rows;
use ringway::batcher::{BatchError, Batchable, CodecError, Columnar, choose_batcher};

use crate::structs::{Everything, Trade};

/// The batch of no rows of another schema than that of a trade.
fn parsed_with(change: impl Fn(&mut Vec<Field>)) -> BatchError {
    let schema = Trade::batcher().schema();
    let mut fields: Vec<Field> = schema.fields().iter().map(|f| (**f).clone()).collect();
    change(&mut fields);
    let batch = RecordBatch::new_empty(Arc::new(Schema::new(fields)));
    choose_batcher::<Trade>(None).parse(&batch).unwrap_err()
}

#[test]
fn a_batch_of_other_columns_is_refused_by_the_name_of_the_field() {
    type Change = fn(&mut Vec<Field>);
    let cases: [(Change, usize, &str, &str); 7] = [
        (|f| f.truncate(2), 2, "`symbol` Utf8 not null", "missing"),
        (|f| f.clear(), 0, "`event_time` Int64 nullable", "missing"),
        (
            |f| f[1] = Field::new("id", DataType::Int32, false),
            1,
            "`id` Int64 not null",
            "`id` Int32 not null",
        ),
        (
            |f| f[2] = Field::new("symbol", DataType::LargeUtf8, false),
            2,
            "`symbol` Utf8 not null",
            "`symbol` LargeUtf8 not null",
        ),
        (
            |f| f[5] = Field::new("type", DataType::Utf8, false),
            5,
            "`type` Utf8 nullable",
            "`type` Utf8 not null",
        ),
        (
            |f| f.swap(3, 4),
            3,
            "`price` Float64 not null",
            "`live` Boolean not null",
        ),
        (
            |f| f.push(Field::new("more", DataType::Utf8, false)),
            7,
            "the end of the columns",
            "`more` Utf8 not null",
        ),
    ];
    for (change, place, wanted, there) in cases {
        match parsed_with(change) {
            BatchError::Schema {
                column,
                expected,
                found,
            } => assert_eq!((column, &*expected, &*found), (place, wanted, there)),
            other => panic!("{wanted}: {other}"),
        }
    }
}

#[test]
fn a_field_of_a_nested_struct_must_be_the_same_too() {
    let other_item = |fields: &mut Vec<Field>| {
        let leg = Fields::from(vec![Field::new("venue", DataType::Utf8, false)]);
        let item = Field::new("item", DataType::Struct(leg), false);
        fields[6] = Field::new("legs", DataType::List(Arc::new(item)), false);
    };
    let refused = parsed_with(other_item).to_string();
    assert!(refused.contains("column 6"), "{refused}");
    assert!(refused.contains("quantity"), "{refused}");
}

#[test]
fn metadata_makes_no_other_schema() {
    let batch = Everything::batcher().build(&Rows::new()).unwrap();
    let metadata = [("origin".to_string(), "elsewhere".to_string())];
    let schema = (*batch.schema()).clone().with_metadata(metadata.into());
    let batch = RecordBatch::try_new(Arc::new(schema), batch.columns().to_vec()).unwrap();
    assert!(Everything::batcher().parse(&batch).unwrap().is_empty());
}

/// A map of which a value may be null on the wire, and may not be here.
#[derive(Debug, PartialEq, Columnar)]
struct Counts {
    counts: BTreeMap<String, i64>,
    more: Option<BTreeMap<String, i64>>,
}

/// Three maps: of two entries, of none, and of the last two.
fn maps(keys: [&str; 4], values: [Option<i64>; 4], valid: Option<[bool; 3]>) -> ArrayRef {
    let schema = Counts::batcher().schema();
    let DataType::Map(entries, _) = schema.field(1).data_type() else {
        panic!("a map is a map");
    };
    let DataType::Struct(fields) = entries.data_type() else {
        panic!("entries are a struct");
    };
    let keys = StringArray::from(keys.to_vec());
    let values = Int64Array::from(values.to_vec());
    let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(values)];
    let structs = StructArray::new(fields.clone(), columns, None);
    let offsets = OffsetBuffer::new(vec![0, 2, 2, 4].into());
    let nulls = valid.map(|valid| NullBuffer::from(valid.to_vec()));
    Arc::new(MapArray::new(
        entries.clone(),
        offsets,
        structs,
        nulls,
        false,
    ))
}

fn counts(counts: ArrayRef, more: ArrayRef) -> RecordBatch {
    let event_time = Arc::new(Int64Array::new_null(counts.len()));
    RecordBatch::try_new(Counts::batcher().schema(), vec![event_time, counts, more]).unwrap()
}

const KEYS: [&str; 4] = ["a", "b", "b", "a"];
const VALUES: [Option<i64>; 4] = [Some(1), Some(2), Some(3), Some(4)];

#[test]
fn a_map_without_a_value_is_refused_with_row_and_place() {
    let good = maps(KEYS, VALUES, None);
    let bad = maps(KEYS, [Some(1), Some(2), Some(3), None], None);
    let batch = counts(good.clone(), bad.clone());
    let refused = Counts::batcher().parse(&batch).unwrap_err();
    let expected = "row 2 of column 2 holds a null at `more.value`, where none may be";
    assert_eq!(refused.to_string(), expected);
    // The rows of a slice are counted from its own first one, and no others are looked at.
    let refused = Counts::batcher().parse(&batch.slice(1, 2)).unwrap_err();
    assert!(matches!(refused, BatchError::NullWithin { row: 1, .. }));
    assert!(Counts::batcher().parse(&batch.slice(0, 2)).is_ok());
}

#[test]
fn what_lies_within_a_null_is_not_looked_at() {
    let good = maps(KEYS, VALUES, None);
    let hidden = maps(
        ["a", "b", "c", "c"],
        [Some(1), Some(2), None, None],
        Some([true, true, false]),
    );
    let rows = Counts::batcher().parse(&counts(good, hidden)).unwrap();
    let more: Vec<Option<usize>> = rows
        .iter()
        .map(|row| row.value.more.as_ref().map(BTreeMap::len))
        .collect();
    assert_eq!(more, [Some(2), Some(0), None]);
}

#[test]
fn keys_may_come_in_any_order_but_only_once() {
    let good = maps(KEYS, VALUES, None);
    let rows = Counts::batcher().parse(&counts(good.clone(), good.clone()));
    let last = &rows.unwrap().into_vec()[2].value.counts;
    assert_eq!(*last, [("a".to_string(), 4), ("b".to_string(), 3)].into());

    let twice = maps(["a", "b", "c", "c"], VALUES, None);
    let refused = Counts::batcher().parse(&counts(twice, good)).unwrap_err();
    let BatchError::Codec { row: 2, source } = refused else {
        panic!("{refused}");
    };
    assert_eq!(source, CodecError::RepeatedKey);
}
