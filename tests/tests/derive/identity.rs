//! What was built comes back.

use arrow::array::RecordBatch;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use ringway::batch::{Row, Rows};
use ringway::batcher::{Batchable, Columnar, View, choose_batcher, view};
use ringway_tests::seed::Seeded;

use crate::structs::{Everything, random_rows};

fn sent(batch: &RecordBatch) -> RecordBatch {
    let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref()).unwrap();
    writer.write(batch).unwrap();
    let bytes = writer.into_inner().unwrap();
    let mut batches = StreamReader::try_new(bytes.as_slice(), None).unwrap();
    batches.next().unwrap().unwrap()
}

#[test]
fn random_structs_come_back_whole_sliced_and_sent() {
    let mut seed = Seeded::new();
    let batcher = choose_batcher::<Everything>(None);
    for rows in [0, 1, 2, 7, 64, 65, 130, 400] {
        let rows = random_rows(&mut seed, rows);
        let batch = batcher.build(&rows).unwrap();
        assert_eq!(batch.schema(), batcher.schema());
        assert_eq!(batch.num_rows(), rows.len());
        assert_eq!(batcher.parse(&batch).unwrap(), rows);
        assert_eq!(batcher.parse(&sent(&batch)).unwrap(), rows);

        let from = seed.below(rows.len() as u64 + 1) as usize;
        let len = seed.below((rows.len() - from) as u64 + 1) as usize;
        let expected = Rows::from(rows.into_vec()[from..from + len].to_vec());
        let slice = batch.slice(from, len);
        assert_eq!(batcher.parse(&slice).unwrap(), expected);
        assert_eq!(batcher.parse(&sent(&slice)).unwrap(), expected);
        // Equal rows give equal columns, wherever they came from.
        assert_eq!(batcher.build(&expected).unwrap(), slice);
    }
}

#[test]
fn a_borrowed_row_is_the_row_that_is_parsed() {
    let mut seed = Seeded::new();
    let rows = random_rows(&mut seed, 50);
    let batch = choose_batcher(None).build(&rows).unwrap();
    let view = view::<Everything>(&batch).unwrap();
    assert_eq!(view.len(), 50);
    for (row, Row { value, event_time }) in rows.iter().enumerate() {
        assert_eq!(Everything::from(view.get(row)), *value);
        assert_eq!(view.event_time(row), *event_time);
        let without_nan = view.get(row);
        assert_eq!(without_nan, view.value(row));
    }
}

#[test]
fn the_bits_of_numbers_that_equal_nothing_are_kept() {
    let nan = f64::from_bits(0x7ff8_0000_dead_beef);
    let value = Everything {
        f64: nan,
        ..Everything::default()
    };
    let back = round_trip(vec![value]);
    assert_eq!(back[0].f64.to_bits(), nan.to_bits());
}

/// What the struct leaves out is not sent.
#[derive(Debug, PartialEq, Columnar)]
struct Skipping {
    kept: i64,
    #[columnar(skip)]
    cached: Option<std::time::Duration>,
    r#type: u8,
}

#[test]
fn a_field_that_is_skipped_has_no_column_and_comes_back_as_its_default() {
    let value = Skipping {
        kept: 1,
        cached: Some(std::time::Duration::ZERO),
        r#type: 2,
    };
    let schema = Skipping::batcher().schema();
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names, ["event_time", "kept", "type"]);
    let expected = Skipping {
        kept: 1,
        cached: None,
        r#type: 2,
    };
    assert_eq!(round_trip(vec![value]), [expected]);
}

pub(crate) fn round_trip<T: Batchable>(values: Vec<T>) -> Vec<T> {
    let batcher = choose_batcher::<T>(None);
    let rows: Rows<T> = values.into_iter().map(Row::untimed).collect();
    let parsed = batcher.parse(&batcher.build(&rows).unwrap()).unwrap();
    parsed.into_iter().map(|row| row.value).collect()
}
