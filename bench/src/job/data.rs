//! The batches that the jobs take.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use ringway::connect::{
    Collected, NexmarkKind, ParquetSource, ParquetSourceOptions, SourceConnector, nexmark_batches,
};
use ringway::error::OperatorError;
use ringway::job::{Job, JobOutcome};
use ringway::operator::{Emitter, Source, SourceProgress, Subtask};
use ringway_shm::Bell;

use crate::error::BenchError;

/// Bids of a full run: some 80 MB, more than a cache holds.
const BIDS: usize = 40 * BATCH_ROWS;
/// Bids of a run that is only checked.
const SMOKE_BIDS: usize = 2_000;
/// Rows of a batch.
const BATCH_ROWS: usize = 8192;
/// Rows of a batch of a run that is only checked.
const SMOKE_BATCH_ROWS: usize = 512;

/// What a job takes.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) batches: Arc<[RecordBatch]>,
    /// Rows of the result, where they are known from elsewhere.
    pub(crate) result_rows: Option<u64>,
    /// Whether the same batches may come again in the same job, or would be late.
    pub(crate) repeatable: bool,
}

impl Input {
    pub(crate) fn rows(&self) -> u64 {
        self.batches
            .iter()
            .map(|batch| batch.num_rows() as u64)
            .sum()
    }

    /// Bytes of memory that the batches hold on to.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.batches.iter().map(RecordBatch::get_array_memory_size);
        bytes.sum::<usize>() as u64
    }
}

/// Bids of the Nexmark benchmark.
pub(crate) fn bids(smoke: bool) -> Input {
    let (rows, batch_rows) = if smoke {
        (SMOKE_BIDS, SMOKE_BATCH_ROWS)
    } else {
        (BIDS, BATCH_ROWS)
    };
    Input {
        batches: nexmark_batches(NexmarkKind::Bid, rows, batch_rows).into(),
        result_rows: None,
        repeatable: true,
    }
}

/// The folder of the examples' data in the repository that this was built from.
pub(crate) fn data_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/data")
}

/// Reads these columns of a Parquet file, in its order.
///
/// # Errors
/// When there is no such file, or it has other columns; the error names the file.
pub(crate) fn read_parquet(path: &Path, columns: &[&str]) -> Result<Vec<RecordBatch>, BenchError> {
    let options = ParquetSourceOptions {
        path: path.to_string_lossy().as_ref().into(),
        columns: Some(columns.iter().map(|&column| column.to_owned()).collect()),
        event_time: None,
        watermark: None,
    };
    let source = ParquetSource::new(options, Path::new("."))?;
    let job = Job::new("read");
    let collected = Collected::new();
    job.source("file", move |subtask: &Subtask| {
        Ok(Boxed(source.build(subtask)))
    })
    .sink("collect", collected.sink());
    let report = job.run()?;
    if !matches!(report.outcome, JobOutcome::Ended) {
        let path = path.display();
        return Err(BenchError::new(format!("{path}: {:?}", report.outcome)));
    }
    Ok(collected.batches())
}

/// A connector's source as the job API takes it.
struct Boxed(Box<dyn Source<RecordBatch>>);

impl Source<RecordBatch> for Boxed {
    fn open(&mut self, subtask: &Subtask, bell: &Bell) -> Result<(), OperatorError> {
        self.0.open(subtask, bell)
    }

    fn poll(
        &mut self,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<SourceProgress, OperatorError> {
        self.0.poll(out)
    }
}
