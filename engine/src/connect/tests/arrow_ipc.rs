//! Arrow IPC files and streams as input and as output.

use std::fs;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, DictionaryArray, Int64Array, StringArray, StringViewArray, new_null_array,
};
use arrow::datatypes::{DataType, Field, Int8Type, Schema};

use super::*;
use crate::connect::{NexmarkKind, nexmark_batches};

fn write(dir: &Path, options: &str, batches: Vec<RecordBatch>) {
    let to = sink("arrow", options, dir);
    let schema = batches[0].schema();
    to.validate(&schema, 1).unwrap();
    write_all(&mut *to.build(&subtask(0, 1), &schema), batches).unwrap();
    let path = options.split('\'').nth(1).unwrap();
    let size = fs::metadata(dir.join(path)).unwrap().len();
    assert_eq!(to.stats().read().bytes, size);
}

#[test]
fn a_few_rows_of_many_are_a_small_file() {
    let dir = tempfile::tempdir().unwrap();
    let texts = (0..8_192).map(|row| Some(format!("{row:0100}")));
    let texts: ArrayRef = Arc::new(texts.collect::<StringViewArray>());
    let batch = RecordBatch::try_from_iter([("text", texts)]).unwrap();
    for form in ["file", "stream"] {
        let options = format!("path = 'few.arrow'\nform = '{form}'");
        let few = vec![batch.slice(100, 3), batch.slice(8_000, 2)];
        write(dir.path(), &options, few.clone());
        let size = fs::metadata(dir.path().join("few.arrow")).unwrap().len();
        assert!(size < 8_000, "{size} bytes");
        let connector = source("arrow", "path = 'few.arrow'", dir.path());
        let elements = run_all(&*connector, 1);
        let read: Vec<_> = batches(&elements)
            .iter()
            .map(|b| b.column(1).clone())
            .collect();
        assert_eq!(
            read,
            few.iter().map(|b| b.column(0).clone()).collect::<Vec<_>>()
        );
    }
}

#[test]
fn what_is_written_is_small_enough_to_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let long = "x".repeat(40 << 20);
    let texts: ArrayRef = Arc::new(StringArray::from(vec![long.as_str(); 2]));
    let batch = RecordBatch::try_from_iter([("text", texts)]).unwrap();
    write(dir.path(), "path = 'large.arrow'", vec![batch]);
    let elements = run_all(&*source("arrow", "path = 'large.arrow'", dir.path()), 1);
    assert_eq!(rows(&elements), 2);
}

#[test]
fn dictionaries_that_differ_are_a_stream_and_an_error_that_says_so_for_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let batch = |words: [&str; 2]| {
        let words: DictionaryArray<Int8Type> = words.into_iter().collect();
        RecordBatch::try_from_iter([("word", Arc::new(words) as ArrayRef)]).unwrap()
    };
    let differing = vec![batch(["a", "b"]), batch(["c", "a"])];
    let options = "path = 'out.arrow'\nform = 'stream'";
    write(dir.path(), options, differing.clone());
    let elements = run_all(&*source("arrow", "path = 'out.arrow'", dir.path()), 1);
    assert_eq!(batches(&elements)[1].column(1), differing[1].column(0));
    let to = sink("arrow", "path = 'file.arrow'", dir.path());
    let mut to = to.build(&subtask(0, 1), &differing[0].schema());
    let error = write_all(&mut *to, differing).unwrap_err().to_string();
    assert!(
        error.contains("file.arrow") && error.contains("`form = \"stream\"`"),
        "{error}"
    );
}

#[test]
fn files_and_streams_are_read_back_compressed_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let written = nexmark_batches(NexmarkKind::All, 20_000, 1000);
    let elements: Vec<Element> = written.iter().cloned().map(StreamElement::Data).collect();
    for form in ["file", "stream"] {
        for compression in ["none", "lz4", "zstd"] {
            let name = format!("{form}-{compression}.arrow");
            let options =
                format!("path = '{name}'\nform = '{form}'\ncompression = '{compression}'");
            write(dir.path(), &options, written.clone());
            let connector = source("arrow", &format!("path = '{name}'"), dir.path());
            assert_eq!(connector.schema().fields(), written[0].schema().fields());
            assert_eq!(sum(&run_all(&*connector, 1)), sum(&elements), "{name}");
            let size = fs::metadata(dir.path().join(&name)).unwrap().len();
            assert_eq!(connector.stats().read().bytes, size);
        }
    }
    let all = source("arrow", "path = '*.arrow'", dir.path());
    assert_eq!(all.parallelism_max(), Some(6));
    assert_eq!(rows(&run_all(&*all, 4)), 6 * 20_000);
}

#[test]
fn large_batches_are_cut_and_metadata_and_dictionaries_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let times: ArrayRef = Arc::new(Int64Array::from_iter_values(0..20_000));
    let words: DictionaryArray<Int8Type> = (0..20_000).map(|id| ["a", "b"][id % 2]).collect();
    let metadata = [("key".to_owned(), "value".to_owned())];
    let words_field = Field::new("word", words.data_type().clone(), true);
    let fields = vec![
        Field::new("event_time", DataType::Int64, true),
        words_field.with_metadata(metadata.clone().into()),
    ];
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata.into()));
    let batch = RecordBatch::try_new(schema, vec![times, Arc::new(words)]).unwrap();
    write(
        dir.path(),
        "path = 'out'\nform = 'stream'",
        vec![batch.clone()],
    );
    let connector = source("arrow", "path = 'out'\nwatermark = {}", dir.path());
    assert_eq!(connector.schema().metadata(), batch.schema().metadata());
    let elements = run_all(&*connector, 1);
    let read = batches(&elements);
    let sizes: Vec<_> = read.iter().map(|batch| batch.num_rows()).collect();
    assert_eq!(sizes, [8192, 8192, 20_000 - 2 * 8192]);
    assert_eq!(read[1].column(1), &batch.column(1).slice(8192, 8192));
    assert_watermarks_hold(&elements);
}

#[test]
fn files_that_differ_or_are_broken_are_errors_with_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let column = |name: &str| {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x"; 1000]));
        RecordBatch::try_from_iter([(name, text)]).unwrap()
    };
    for form in ["file", "stream"] {
        let options = format!("path = 'a'\nform = '{form}'");
        write(dir.path(), &options, vec![column("a"), column("a")]);
        write(dir.path(), "path = 'b'", vec![column("b")]);
        let error = try_source("arrow", "path = ['a', 'b']", dir.path());
        let error = error.err().unwrap().to_string();
        assert!(error.contains("/b: its columns are `b`"), "{error}");
        // In the second batch of the file.
        let mut bytes = fs::read(dir.path().join("a")).unwrap();
        let at = bytes.len() * 3 / 4;
        bytes[at - 600..at].fill(0xff);
        fs::write(dir.path().join("a"), bytes).unwrap();
        let connector = source("arrow", "path = 'a'", dir.path());
        let error = Stepped::open(&*connector, 0, 1).run().unwrap_err();
        assert!(error.to_string().contains("/a: "), "{error}");
    }
    for bytes in [&b""[..], b"ARROW1\0\0", b"a,b\n1,2\n"] {
        fs::write(dir.path().join("a"), bytes).unwrap();
        let error = try_source("arrow", "path = 'a'", dir.path()).err().unwrap();
        assert!(error.to_string().contains("/a: "), "{error}");
    }
}

#[test]
fn a_column_of_nothing_passes() {
    let dir = tempfile::tempdir().unwrap();
    let nothing = new_null_array(&DataType::Null, 3);
    let batch = RecordBatch::try_from_iter([("nothing", nothing)]).unwrap();
    write(dir.path(), "path = 'out'", vec![batch]);
    let elements = run_all(&*source("arrow", "path = 'out'", dir.path()), 1);
    assert_eq!(rows(&elements), 3);
}
