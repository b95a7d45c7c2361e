//! The batches that the jobs take.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use ringway::connect::{
    Collected, NexmarkKind, ParquetSource, ParquetSourceOptions, SourceConnector, nexmark_batches,
};
use ringway::element::{StreamElement, Watermark};
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

/// Batches of auctions of a full run, and of one that is only checked.
const AUCTION_BATCHES: usize = 40;
const SMOKE_AUCTION_BATCHES: usize = 4;

/// Of 50 events 1 is a person, 3 are auctions and 46 are bids.
const AUCTIONS_OF_50: usize = 3;
const BIDS_OF_50: usize = 46;

/// How often the bids come in a stream that goes on in event time, so that a job is long
/// against its start.
const PASSES: usize = 16;

/// A pass begins at a multiple of this after the one before it.
const PASS_STEP_MS: i64 = 10_000;

/// What a job takes.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// The batches of each source.
    pub(crate) sides: Vec<Side>,
    /// Rows of the result, where they are known from elsewhere.
    pub(crate) result_rows: Option<u64>,
    /// Whether the same batches may come again in the same job, or would be late.
    pub(crate) repeatable: bool,
}

/// What one source gives.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) batches: Arc<[RecordBatch]>,
    /// After each batch a watermark right before the next one, as a source of events in order
    /// gives them; none otherwise.
    pub(crate) has_watermarks: bool,
}

impl Side {
    fn in_order(batches: Vec<RecordBatch>) -> Self {
        Self {
            batches: batches.into(),
            has_watermarks: true,
        }
    }

    /// The batches and watermarks, `repeats` times.
    pub(crate) fn elements(&self, repeats: usize) -> Vec<StreamElement<RecordBatch>> {
        let once = self.batches.iter().enumerate().flat_map(|(at, batch)| {
            let next = self.batches.get(at + 1).filter(|_| self.has_watermarks);
            let watermark = next.map(|next| Watermark::active(first_time(next) - 1));
            [
                Some(StreamElement::Data(batch.clone())),
                watermark.map(StreamElement::Watermark),
            ]
        });
        let once: Vec<_> = once.flatten().collect();
        std::iter::repeat_n(once, repeats).flatten().collect()
    }

    /// The watermark after the batch at `at`: all that comes later is after it.
    pub(crate) fn watermark_after(&self, at: usize) -> i64 {
        let next = self.batches.get(at + 1);
        next.map_or(i64::MAX, |next| first_time(next) - 1)
    }
}

impl Input {
    /// Batches without watermarks, which may come again.
    fn repeatable(batches: Vec<RecordBatch>) -> Self {
        let side = Side {
            batches: batches.into(),
            has_watermarks: false,
        };
        Self {
            sides: vec![side],
            result_rows: None,
            repeatable: true,
        }
    }

    fn in_order(sides: Vec<Side>) -> Self {
        Self {
            sides,
            result_rows: None,
            repeatable: false,
        }
    }

    /// Batches of a file, whose watermarks the job makes.
    pub(super) fn of_file(batches: Vec<RecordBatch>, result_rows: Option<u64>) -> Self {
        Self {
            result_rows,
            repeatable: false,
            ..Self::repeatable(batches)
        }
    }

    /// The batches of the first source.
    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.sides[0].batches
    }

    pub(crate) fn rows(&self) -> u64 {
        let rows = self.all().map(|batch| batch.num_rows() as u64);
        rows.sum()
    }

    /// As how many jobs, and how often in each, it comes `count` times.
    pub(crate) const fn jobs_and_repeats(&self, count: u64) -> (u64, u64) {
        match self.repeatable {
            true => (1, count),
            false => (count, 1),
        }
    }

    /// Bytes of memory that the batches hold on to.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.all().map(RecordBatch::get_array_memory_size);
        bytes.sum::<usize>() as u64
    }

    fn all(&self) -> impl Iterator<Item = &RecordBatch> {
        self.sides.iter().flat_map(|side| side.batches.iter())
    }
}

/// Bids of the Nexmark benchmark.
pub(crate) fn bids(smoke: bool) -> Input {
    Input::repeatable(bid_batches(smoke))
}

/// These columns of bids that go on in event time, with watermarks: passes over the same bids,
/// each later.
pub(super) fn bids_in_time(smoke: bool, columns: &[usize]) -> Input {
    let bids = chosen(&bid_batches(smoke), columns);
    let last = bids.last().map_or(0, last_time);
    let span = last - bids.first().map_or(0, first_time);
    let step = (span / PASS_STEP_MS + 1) * PASS_STEP_MS;
    let passes = (0..PASSES as i64).flat_map(|pass| bids.iter().map(move |bid| (pass, bid)));
    let later = passes.map(|(pass, batch)| later_by(batch, pass * step));
    Input::in_order(vec![Side::in_order(later.collect())])
}

/// The same without watermarks, for a job that gives bids other times.
pub(super) fn bids_without_watermarks(smoke: bool, columns: &[usize]) -> Input {
    let mut input = bids_in_time(smoke, columns);
    input.sides[0].has_watermarks = false;
    input
}

/// These columns of auctions and of the people who sell, in batches that cover the same time.
pub(super) fn auctions_and_people(smoke: bool, auctions: &[usize], people: &[usize]) -> Input {
    let (batches, rows) = if smoke {
        (SMOKE_AUCTION_BATCHES, SMOKE_BATCH_ROWS)
    } else {
        (AUCTION_BATCHES, BATCH_ROWS)
    };
    // People and auctions come in groups of one and three.
    let groups = rows / AUCTIONS_OF_50;
    Input::in_order(vec![
        side(
            NexmarkKind::Auction,
            batches,
            groups * AUCTIONS_OF_50,
            auctions,
        ),
        side(NexmarkKind::Person, batches, groups, people),
    ])
}

/// These columns of auctions and of the bids on them, in batches that cover the same time.
pub(super) fn auctions_and_bids(smoke: bool, auctions: &[usize], bids: &[usize]) -> Input {
    let rows = if smoke { SMOKE_BATCH_ROWS } else { BATCH_ROWS };
    let groups = rows / BIDS_OF_50;
    let batches = if smoke { SMOKE_BIDS } else { BIDS } / rows + 1;
    Input::in_order(vec![
        side(
            NexmarkKind::Auction,
            batches,
            groups * AUCTIONS_OF_50,
            auctions,
        ),
        side(NexmarkKind::Bid, batches, groups * BIDS_OF_50, bids),
    ])
}

fn side(kind: NexmarkKind, batches: usize, rows: usize, columns: &[usize]) -> Side {
    let all = nexmark_batches(kind, batches * rows, rows);
    Side::in_order(chosen(&all, columns))
}

/// The columns that a query names, as a source of columns would read no others.
fn chosen(batches: &[RecordBatch], columns: &[usize]) -> Vec<RecordBatch> {
    let chosen = batches.iter().map(|batch| batch.project(columns));
    chosen
        .collect::<Result<_, _>>()
        .expect("columns of the events")
}

fn bid_batches(smoke: bool) -> Vec<RecordBatch> {
    let (rows, batch_rows) = if smoke {
        (SMOKE_BIDS, SMOKE_BATCH_ROWS)
    } else {
        (BIDS, BATCH_ROWS)
    };
    nexmark_batches(NexmarkKind::Bid, rows, batch_rows)
}

/// The event times of a batch.
pub(crate) fn times(batch: &RecordBatch) -> &[i64] {
    batch.column(0).as_primitive::<Int64Type>().values()
}

fn first_time(batch: &RecordBatch) -> i64 {
    times(batch)[0]
}

fn last_time(batch: &RecordBatch) -> i64 {
    times(batch)[batch.num_rows() - 1]
}

/// The same rows `ms` later; all columns but the times are shared.
fn later_by(batch: &RecordBatch, ms: i64) -> RecordBatch {
    let mut columns = batch.columns().to_vec();
    let later = Int64Array::from_iter_values(times(batch).iter().map(|time| time + ms));
    columns[0] = Arc::new(later) as ArrayRef;
    RecordBatch::try_new(batch.schema(), columns).expect("columns of the same types")
}

/// The folder of the examples' data in the repository that this was built from.
pub(crate) fn data_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/data")
}

/// The file with the flights in this folder.
///
/// # Errors
/// When it is not there; the error says where it should be.
pub(crate) fn flights_file(folder: &Path) -> Result<PathBuf, BenchError> {
    let file = std::path::absolute(folder)?.join("flights.parquet");
    if file.is_file() {
        return Ok(file);
    }
    Err(BenchError::usage(format!(
        "there is no {}: --data names the folder that has it",
        file.display()
    )))
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
