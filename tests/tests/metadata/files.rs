//! Sinks of files: Arrow IPC, which has a place for every type, and Parquet, which has not.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileReader, StreamReader};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use ringway::connect::{
    ArrowCompression, ArrowForm, ArrowSink, ArrowSinkOptions, ArrowSource, ArrowSourceOptions,
    ConnectError, ParquetCompression, ParquetSink, ParquetSinkOptions, ParquetSource,
    ParquetSourceOptions, Paths, SinkConnector, SourceConnector,
};
use ringway::job::Job;
use ringway_tests::boxed::Boxed;

use crate::batches::Input;
use crate::compared::Arrived;
use crate::jobs::{end, run, source, subtasks};
use crate::{REFUSED, Way};

pub(crate) const ARROW: &[Way] = &[
    Way {
        name: "Arrow file",
        go: file,
    },
    Way {
        name: "Arrow stream",
        go: stream,
    },
    Way {
        name: "Arrow source",
        go: through_the_source,
    },
];

pub(crate) const PARQUET: &[Way] = &[
    Way {
        name: "Parquet",
        go: parquet,
    },
    Way {
        name: "Parquet source",
        go: through_the_parquet_source,
    },
];

/// Runs a job that writes the input with a connector.
fn written(
    input: &Input,
    make: impl FnOnce(&Path) -> Result<Arc<dyn SinkConnector>, ConnectError>,
) -> Result<(), String> {
    let folder = Path::new("/");
    let connector = make(folder).map_err(|error| error.to_string())?;
    let validated = connector.validate(&input.schema, 1);
    validated.map_err(|error| format!("{REFUSED}{error}"))?;
    let schema = Arc::clone(&input.schema);
    let job = Job::new("write");
    source(&job, input).sink_with("file", move |subtask| {
        Ok(Boxed(connector.build(subtask, &schema)))
    });
    end(job, 1)
}

fn arrow(input: &Input, path: &Path, form: ArrowForm) -> Result<(), String> {
    let options = ArrowSinkOptions {
        path: path.to_owned(),
        form,
        compression: ArrowCompression::Lz4,
    };
    written(input, |base| Ok(Arc::new(ArrowSink::new(options, base)?)))
}

fn arrived(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    input: &Input,
) -> Result<Arrived, String> {
    let batches: Result<Vec<_>, _> = batches.collect();
    Ok(Arrived::of(
        batches.map_err(|error| error.to_string())?,
        input.ids(),
    ))
}

fn file(input: &Input) -> Result<Arrived, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.arrow");
    arrow(input, &path, ArrowForm::File)?;
    let reader = FileReader::try_new(File::open(path).unwrap(), None);
    arrived(reader.map_err(|error| error.to_string())?, input)
}

fn stream(input: &Input) -> Result<Arrived, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.arrows");
    arrow(input, &path, ArrowForm::Stream)?;
    let reader = StreamReader::try_new(File::open(path).unwrap(), None);
    arrived(reader.map_err(|error| error.to_string())?, input)
}

fn through_the_source(input: &Input) -> Result<Arrived, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.arrow");
    arrow(input, &path, ArrowForm::File)?;
    let options = ArrowSourceOptions {
        split_bytes: 64 << 20,
        path: Paths::One(path.to_str().unwrap().to_owned()),
        watch_ms: None,
        event_time: None,
        watermark: None,
    };
    let source = ArrowSource::new(options, folder.path()).map_err(|error| error.to_string())?;
    let [batches] = run(|job| {
        let read = job.source("file", move |subtask| Ok(Boxed(source.build(subtask))));
        Ok([read.parallelism(subtasks(1))])
    })?;
    arrived(batches.into_iter().map(Ok), input)
}

fn write_parquet(input: &Input, path: &Path) -> Result<(), String> {
    let options = ParquetSinkOptions {
        path: path.to_owned(),
        compression: ParquetCompression::None,
        row_group_rows: 1_000,
    };
    written(input, |base| Ok(Arc::new(ParquetSink::new(options, base)?)))
}

fn parquet(input: &Input) -> Result<Arrived, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    write_parquet(input, &path)?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap());
    let reader = reader.map_err(|error| error.to_string())?;
    // The library gives batches without the metadata of the schema.
    let schema = Arc::clone(reader.schema());
    let batches = reader.build().map_err(|error| error.to_string())?;
    let batches = batches.map(|batch| batch?.with_schema(Arc::clone(&schema)));
    without_runs(arrived(batches, input))
}

fn through_the_parquet_source(input: &Input) -> Result<Arrived, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    write_parquet(input, &path)?;
    let options = ParquetSourceOptions {
        path: Paths::One(path.to_str().unwrap().to_owned()),
        columns: None,
        event_time: None,
        watermark: None,
    };
    let source = ParquetSource::new(options, folder.path()).map_err(|error| error.to_string())?;
    let [batches] = run(|job| {
        let read = job.source("file", move |subtask| Ok(Boxed(source.build(subtask))));
        Ok([read.parallelism(subtasks(1))])
    })?;
    without_runs(arrived(batches.into_iter().map(Ok), input))
}

/// Parquet lays every column out anew, and gives values for runs.
fn without_runs(arrived: Result<Arrived, String>) -> Result<Arrived, String> {
    Ok(Arrived {
        without_runs: true,
        ..arrived?
    })
}
