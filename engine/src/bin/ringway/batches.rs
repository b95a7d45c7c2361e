//! The batches of a file, whatever their schema.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileReader, StreamReader};
use arrow::json::ReaderBuilder;
use arrow::json::reader::infer_json_schema_from_seekable;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Batches, one after the other.
pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, String>>>;

/// Rows of NDJSON from which the schema is inferred: enough to meet rare fields, and read in a
/// moment. A field that comes later is an error.
const INFERRED_ROWS: usize = 10_000;

/// An Arrow file begins with this, and a stream does not.
const ARROW_FILE_MAGIC: &[u8] = b"ARROW1";

/// Opens a file by its ending: Arrow (`.arrow`, `.arrows`, `.ipc`, `.feather`; file or stream),
/// Parquet (`.parquet`), or NDJSON (`.ndjson`, `.jsonl`, `.json`), whose schema is inferred.
///
/// # Errors
/// What is wrong with it, in words that name the file.
pub(crate) fn open(path: &Path) -> Result<Batches, String> {
    let named = |error: String| format!("{}: {error}", path.display());
    let ending = path
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    let file = File::open(path).map_err(|error| named(error.to_string()))?;
    let opened = match ending.to_ascii_lowercase().as_str() {
        "arrow" | "arrows" | "ipc" | "feather" => arrow(file),
        "parquet" => parquet(file),
        "ndjson" | "jsonl" | "json" => ndjson(file),
        _ => Err("batches are read from .arrow, .parquet and .ndjson files".to_owned()),
    };
    let path = path.to_owned();
    let batches = opened.map_err(named)?;
    Ok(Box::new(batches.map(move |batch| {
        batch.map_err(|error| format!("{}: {error}", path.display()))
    })))
}

/// The batches of an Arrow IPC stream on standard input.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn standard_input() -> Result<Batches, String> {
    let named = |error: ArrowError| format!("standard input, as an Arrow IPC stream: {error}");
    let reader = StreamReader::try_new(io::stdin(), None).map_err(named)?;
    Ok(Box::new(reader.map(move |batch| batch.map_err(named))))
}

fn arrow(file: File) -> Result<Batches, String> {
    let mut reader = BufReader::new(file);
    let start = reader.fill_buf().map_err(|error| error.to_string())?;
    if start.starts_with(ARROW_FILE_MAGIC) {
        return Ok(of(FileReader::try_new(reader, None).map_err(text)?));
    }
    Ok(of(StreamReader::try_new(reader, None).map_err(text)?))
}

fn parquet(file: File) -> Result<Batches, String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file);
    let reader = builder.and_then(ParquetRecordBatchReaderBuilder::build);
    Ok(of(reader.map_err(|error| error.to_string())?))
}

fn ndjson(file: File) -> Result<Batches, String> {
    let mut reader = BufReader::new(file);
    let (schema, _) =
        infer_json_schema_from_seekable(&mut reader, Some(INFERRED_ROWS)).map_err(text)?;
    reader.rewind().map_err(|error| error.to_string())?;
    // A field that comes after those rows only would be left out without a word otherwise.
    let builder = ReaderBuilder::new(Arc::new(schema)).with_strict_mode(true);
    Ok(of(builder.build(reader).map_err(text)?))
}

fn of(batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + 'static) -> Batches {
    Box::new(batches.map(|batch| batch.map_err(text)))
}

fn text(error: ArrowError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use arrow::ipc::writer::{FileWriter, StreamWriter};
    use parquet::arrow::ArrowWriter;
    use tempfile::TempDir;

    use super::*;

    fn batch() -> RecordBatch {
        let (name, n): (ArrayRef, ArrayRef) = (
            Arc::new(StringArray::from(vec![Some("a"), None])),
            Arc::new(Int64Array::from(vec![1, 2])),
        );
        RecordBatch::try_from_iter_with_nullable([("n", n, true), ("name", name, true)]).unwrap()
    }

    fn written(folder: &TempDir, name: &str, write: impl FnOnce(File)) -> PathBuf {
        let path = folder.path().join(name);
        write(File::create(&path).unwrap());
        path
    }

    #[test]
    fn the_rows_are_the_same_from_every_format() {
        let folder = TempDir::new().unwrap();
        let batch = batch();
        let schema = batch.schema();
        let files = [
            written(&folder, "file.arrow", |file| {
                let mut writer = FileWriter::try_new(file, &schema).unwrap();
                writer.write(&batch).unwrap();
                writer.finish().unwrap();
            }),
            written(&folder, "stream.ARROWS", |file| {
                let mut writer = StreamWriter::try_new(file, &schema).unwrap();
                writer.write(&batch).unwrap();
                writer.finish().unwrap();
            }),
            written(&folder, "rows.parquet", |file| {
                let mut writer = ArrowWriter::try_new(file, schema.clone(), None).unwrap();
                writer.write(&batch).unwrap();
                writer.close().unwrap();
            }),
            written(&folder, "rows.ndjson", |mut file| {
                file.write_all(b"{\"n\": 1, \"name\": \"a\"}\n{\"n\": 2}\n")
                    .unwrap();
            }),
        ];
        for path in files {
            let batches: Vec<_> = open(&path).unwrap().collect::<Result<_, _>>().unwrap();
            assert_eq!(batches, std::slice::from_ref(&batch), "{}", path.display());
        }
    }

    #[test]
    fn a_field_that_comes_too_late_for_the_schema_is_an_error_and_not_left_out() {
        let folder = TempDir::new().unwrap();
        let path = written(&folder, "rows.ndjson", |mut file| {
            let rows = "{\"n\": 1}\n".repeat(INFERRED_ROWS);
            file.write_all(rows.as_bytes()).unwrap();
            file.write_all(b"{\"n\": 1, \"late\": 2}\n").unwrap();
        });
        let batches = open(&path).unwrap().collect::<Result<Vec<_>, _>>();
        let said = batches.unwrap_err();
        assert!(
            said.contains("rows.ndjson") && said.contains("late"),
            "{said}"
        );
    }

    #[test]
    fn what_is_wrong_names_the_file() {
        let folder = TempDir::new().unwrap();
        let cases = [
            ("rows.txt", "x", ".parquet"),
            ("rows.parquet", "not parquet", "arquet"),
            ("rows.arrow", "ARROW1 and no more", ""),
            ("rows.ndjson", "{\"n\": 1}\n{\"n\"", ""),
        ];
        for (name, content, expected) in cases {
            let path = written(&folder, name, |mut file| {
                file.write_all(content.as_bytes()).unwrap();
            });
            let said = open(&path).and_then(|batches| batches.collect::<Result<Vec<_>, _>>());
            let said = said.unwrap_err();
            assert!(said.contains(name) && said.contains(expected), "{said}");
        }
        let said = open(&folder.path().join("missing.arrow")).err().unwrap();
        assert!(said.contains("missing.arrow: "), "{said}");
    }
}
