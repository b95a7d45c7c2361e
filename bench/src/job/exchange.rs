//! A keyed exchange between two workers: two sources, one on each, whose rows go to the worker
//! that has their key.
//!
//! Half of the rows cross from one core to the other. By hand it is two threads, each of which
//! splits what it reads by key, adds up its own part, and passes the other on over a ring. The
//! count and the sum of the values of each key are checked.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use ringway::batch::{Payload, Row, Rows};
use ringway::clock::ProcessingTime;
use ringway::connect::MemorySource;
use ringway::element::StreamElement;
use ringway::error::OperatorError;
use ringway::job::{
    Exchange, Job, JobHandle, JobOutcome, Plan, PlanOptions, RunOptions, Stream, start,
};
use ringway::operator::{Progress, Sink};
use ringway::output::{ByKeyColumns, ByKeyHash};
use ringway::partition::{Key, Parallelism};
use serde::{Deserialize, Serialize};

use crate::backoff::Backoff;
use crate::contest::{Contest, Harness, Measure, Sample};
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::pinned::run_pair;
use crate::spent::Spent;

/// Different keys; they are spread over the numbers, as keys of users are.
const KEYS: i64 = 1_000;
const KEY_STEP: i64 = 7_919;

/// Batches of each of the two sources, and of a run that is only checked.
const BATCHES: i64 = 20;
const BATCH_ROWS: i64 = 8192;
const SMOKE_BATCH_ROWS: i64 = 512;

/// Parts that wait on the ring of the hand-written exchange: as on an edge.
const RING_PARTS: usize = 1024;

/// A row: its key and its value.
pub(crate) type Keyed = (i64, i64);

/// What is exchanged in one of its forms.
pub(crate) trait Form: 'static {
    type Batch: Payload + Sync;
    const NAME: &'static str;

    /// A batch of these rows.
    fn of(rows: &[Keyed]) -> Self::Batch;

    /// Rows with the same key go to the same subtask.
    fn by_key() -> Exchange;

    fn for_each(batch: &Self::Batch, each: impl FnMut(i64, i64));
}

/// A form that two threads exchange without a job.
trait ByHand: Form {
    /// The rows for the first of two threads and for the second.
    fn split(batch: &Self::Batch) -> [Self::Batch; 2];
}

/// Record batches of `event_time`, `key` and `value`.
struct Columns;

impl Form for Columns {
    type Batch = RecordBatch;
    const NAME: &'static str = "job/exchange/batch";

    fn of(rows: &[Keyed]) -> RecordBatch {
        let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let (keys, values) = rows.iter().copied().unzip();
        let times = vec![0; rows.len()];
        let columns = [
            ("event_time", column(times)),
            ("key", column(keys)),
            ("value", column(values)),
        ];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    }

    fn by_key() -> Exchange {
        by_column(&Self::of(&[]), 1)
    }

    fn for_each(batch: &RecordBatch, mut each: impl FnMut(i64, i64)) {
        for (key, value) in ints(batch, 1).iter().zip(ints(batch, 2)) {
            each(*key, *value);
        }
    }
}

impl ByHand for Columns {
    fn split(batch: &RecordBatch) -> [RecordBatch; 2] {
        let columns = [0, 1, 2].map(|at| ints(batch, at));
        let mut parts: [[Vec<i64>; 3]; 2] = Default::default();
        for part in parts.iter_mut().flatten() {
            part.reserve(batch.num_rows());
        }
        for ((time, key), value) in columns[0].iter().zip(columns[1]).zip(columns[2]) {
            let part = &mut parts[thread_of(*key)];
            part[0].push(*time);
            part[1].push(*key);
            part[2].push(*value);
        }
        parts.map(|columns| {
            let columns = columns.map(|values| Arc::new(Int64Array::from(values)) as ArrayRef);
            let part = RecordBatch::try_new(batch.schema(), columns.into());
            part.expect("the columns are those of the schema")
        })
    }
}

/// Typed rows of a key and a value.
struct TypedRows;

impl Form for TypedRows {
    type Batch = Rows<Keyed>;
    const NAME: &'static str = "job/exchange/rows";

    fn of(rows: &[Keyed]) -> Rows<Keyed> {
        rows.iter().map(|row| Row::at(0, *row)).collect()
    }

    fn by_key() -> Exchange {
        Exchange::key::<Self::Batch>(|| Box::new(ByKeyHash::new(|(key, _): &Keyed| key.key_hash())))
    }

    fn for_each(batch: &Rows<Keyed>, mut each: impl FnMut(i64, i64)) {
        for row in batch {
            each(row.value.0, row.value.1);
        }
    }
}

impl ByHand for TypedRows {
    fn split(batch: &Rows<Keyed>) -> [Rows<Keyed>; 2] {
        let mut parts = [(); 2].map(|()| Rows::with_capacity(batch.len()));
        for row in batch {
            parts[thread_of(row.value.0)].push(row.clone());
        }
        parts
    }
}

/// Rows of record batches like this one, by one of its columns of integers.
pub(crate) fn by_column(batch: &RecordBatch, column: usize) -> Exchange {
    let schema = batch.schema();
    Exchange::key::<RecordBatch>(move || {
        let key = ByKeyColumns::bind(&schema, &[column]);
        Box::new(key.expect("an int64 column can be a key"))
    })
}

/// Count and sum of the values of each key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sums(Vec<(u64, i64)>);

impl Sums {
    pub(crate) fn none() -> Self {
        Self(vec![(0, 0); KEYS as usize])
    }

    #[inline]
    pub(crate) fn add(&mut self, key: i64, value: i64) {
        // Keys from elsewhere would be beyond it, and fail the run. Of unsigned numbers: the signed
        // product with a number in memory, which this would be, takes Zen 4 five times as long where
        // the numbers are a column as where they are pairs, and the one contender has columns.
        let sum = &mut self.0[(key as u64 / KEY_STEP as u64) as usize];
        sum.0 += 1;
        sum.1 += value;
    }

    #[inline]
    fn add_batch<F: Form>(&mut self, batch: &F::Batch) {
        F::for_each(batch, |key, value| self.add(key, value));
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        for (sum, other) in self.0.iter_mut().zip(&other.0) {
            sum.0 += other.0;
            sum.1 += other.1;
        }
    }

    pub(crate) fn times(&self, count: u64) -> Self {
        let times = |(rows, sum): &(u64, i64)| (rows * count, sum * count as i64);
        Self(self.0.iter().map(times).collect())
    }

    /// # Errors
    /// When a row is lost, doubled or at another key.
    pub(crate) fn require(&self, expected: &Self) -> Result<(), BenchError> {
        match self.0.iter().zip(&expected.0).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(key) => Err(BenchError::new(format!(
                "key {key} has {:?} rows and sum, and should have {:?}",
                self.0[key], expected.0[key]
            ))),
        }
    }
}

/// A sink that adds up by key, and leaves its sums with those of the others at the end.
struct SumSink<F> {
    sums: Sums,
    all: Arc<Mutex<Sums>>,
    form: PhantomData<fn() -> F>,
}

impl<F: Form> Sink<F::Batch> for SumSink<F> {
    fn write(&mut self, batch: F::Batch, _now: ProcessingTime) -> Result<Progress, OperatorError> {
        self.sums.add_batch::<F>(&batch);
        Ok(Progress::Done)
    }
}

impl<F> Drop for SumSink<F> {
    fn drop(&mut self) {
        if let Ok(mut all) = self.all.lock() {
            all.add_all(&self.sums);
        }
    }
}

/// Measures the exchange of record batches and of typed rows.
///
/// # Errors
/// When a job fails, or a row is lost, doubled or at the wrong key.
pub(super) fn measure(harness: &mut Harness) -> Result<(), BenchError> {
    compare::<Columns>(harness)?;
    compare::<TypedRows>(harness)
}

fn compare<F: ByHand>(harness: &mut Harness) -> Result<(), BenchError> {
    if !harness.wants(F::NAME) {
        return Ok(());
    }
    let cpus = harness.settings.cpus;
    let input = &Input::<F>::new(harness.settings.smoke);
    harness.measure(Contest {
        name: F::NAME.to_owned(),
        unit: "rows/s",
        measure: Measure::Rate,
        baseline_name: "two threads by hand",
        count: 1,
        ours: Box::new(|count| run_job(cpus, input, count)),
        baseline: Box::new(|count| run_by_hand(cpus, input, count)),
    })
}

/// The batches of both sources, and what the rows of both come to.
pub(crate) struct Input<F: Form> {
    batches: [Arc<[F::Batch]>; 2],
    pub(crate) expected: Sums,
}

impl<F: Form> Input<F> {
    /// `smoke` makes small ones.
    pub(crate) fn new(smoke: bool) -> Self {
        let rows = rows(smoke);
        let mut expected = Sums::none();
        for (key, value) in rows.iter().flatten().flatten() {
            expected.add(*key, *value);
        }
        Self {
            batches: rows.map(|batches| batches.iter().map(|rows| F::of(rows)).collect()),
            expected,
        }
    }

    /// Of a run that took all of it `count` times.
    pub(crate) fn sample(&self, count: u64, wall: Duration, spent: Spent) -> Sample {
        let all = || self.batches.iter().flat_map(|source| source.iter());
        let rows: usize = all().map(Payload::rows).sum();
        let bytes: usize = all().map(Payload::bytes).sum();
        Sample::rate(rows as u64 * count, wall, spent, bytes as u64 * count)
    }
}

/// The rows of both sources, batch by batch.
pub(crate) fn rows(smoke: bool) -> [Vec<Vec<Keyed>>; 2] {
    let rows = if smoke { SMOKE_BATCH_ROWS } else { BATCH_ROWS };
    let row = |number: i64| {
        let key = number.wrapping_mul(48_271) % 65_521 % KEYS * KEY_STEP;
        (key, number)
    };
    [0, 1].map(|source| {
        let batch = |batch: i64| {
            let all = (0..rows).map(|at| row((batch * rows + at) * 2 + source));
            all.collect()
        };
        (0..BATCHES).map(batch).collect()
    })
}

pub(crate) fn run_job<F: Form>(
    cpus: CpuPair,
    input: &Input<F>,
    count: u64,
) -> Result<Sample, BenchError> {
    let (job, all) = said(input, count)?;
    let options = PlanOptions {
        parallelism: Parallelism::new(2)?,
        workers: vec![Some(cpus.first.0), Some(cpus.second.0)],
        ..PlanOptions::default()
    };
    let plan = Plan::new(job.into_graph(), &options)?;
    let before = Spent::of_process();
    let elapsed = ended(start(&plan, &RunOptions::default())?)?;
    let spent = Spent::of_process() - before;
    let sums = all.lock().map_err(|_| BenchError::new("a sink panicked"))?;
    sums.require(&input.expected.times(count))?;
    Ok(input.sample(count, elapsed, spent))
}

/// The exchange as a job, whose sinks leave their sums where this tells.
///
/// # Errors
/// When nobody could go so often over the input.
pub(crate) fn said<F: Form>(
    input: &Input<F>,
    count: u64,
) -> Result<(Job, Arc<Mutex<Sums>>), BenchError> {
    let job = Job::new("exchange");
    let all = Arc::new(Mutex::new(Sums::none()));
    let (sources, repeats) = (input.batches.clone(), usize::try_from(count)?);
    let stream: Stream<F::Batch> = job.source("memory", move |subtask| {
        let batches = &sources[subtask.index as usize];
        let batches = std::iter::repeat_n(batches, repeats).flat_map(|batches| batches.iter());
        Ok(MemorySource::new(batches.cloned().map(StreamElement::Data)))
    });
    let sums = Arc::clone(&all);
    stream.exchange(F::by_key()).sink_with("sums", move |_| {
        Ok(SumSink::<F> {
            sums: Sums::none(),
            all: Arc::clone(&sums),
            form: PhantomData,
        })
    });
    Ok((job, all))
}

/// Waits for the end of a job, and tells how long it ran.
///
/// # Errors
/// When it failed.
pub(crate) fn ended(job: JobHandle) -> Result<Duration, BenchError> {
    let report = job.wait();
    match report.outcome {
        JobOutcome::Ended => Ok(report.elapsed),
        outcome => Err(BenchError::new(format!("the job ended as {outcome:?}"))),
    }
}

fn run_by_hand<F: ByHand>(
    cpus: CpuPair,
    input: &Input<F>,
    count: u64,
) -> Result<Sample, BenchError> {
    let (to_second, from_first) = rtrb::RingBuffer::new(RING_PARTS);
    let (to_first, from_second) = rtrb::RingBuffer::new(RING_PARTS);
    let pair = run_pair(
        cpus,
        || Party::<F>::new(0, to_second, from_second).run(&input.batches[0], count),
        || Party::<F>::new(1, to_first, from_first).run(&input.batches[1], count),
    )?;
    let mut sums = pair.first;
    sums.add_all(&pair.second);
    sums.require(&input.expected.times(count))?;
    Ok(input.sample(count, pair.wall, pair.spent))
}

/// One of the two threads.
struct Party<F: Form> {
    number: usize,
    to_other: Option<rtrb::Producer<F::Batch>>,
    from_other: rtrb::Consumer<F::Batch>,
    sums: Sums,
}

impl<F: ByHand> Party<F> {
    fn new(
        number: usize,
        to_other: rtrb::Producer<F::Batch>,
        from_other: rtrb::Consumer<F::Batch>,
    ) -> Self {
        Self {
            number,
            to_other: Some(to_other),
            from_other,
            sums: Sums::none(),
        }
    }

    fn run(mut self, batches: &[F::Batch], count: u64) -> Sums {
        for _ in 0..count {
            for batch in batches {
                let [first, second] = F::split(batch);
                let (own, others) = match self.number {
                    0 => (first, second),
                    _ => (second, first),
                };
                self.sums.add_batch::<F>(&own);
                self.pass_on(others);
                self.take();
            }
        }
        self.to_other = None;
        let mut backoff = Backoff::light();
        while !self.from_other.is_abandoned() || !self.from_other.is_empty() {
            if self.take() {
                backoff.reset();
            } else {
                backoff.pause();
            }
        }
        self.sums
    }

    fn pass_on(&mut self, mut part: F::Batch) {
        let mut backoff = Backoff::light();
        while let Some(to_other) = &mut self.to_other {
            match to_other.push(part) {
                Ok(()) => return,
                Err(rtrb::PushError::Full(rejected)) => part = rejected,
            }
            if !self.take() {
                backoff.pause();
            }
        }
    }

    /// Adds up what has come; returns whether something has.
    fn take(&mut self) -> bool {
        let mut some = false;
        while let Ok(part) = self.from_other.pop() {
            self.sums.add_batch::<F>(&part);
            some = true;
        }
        some
    }
}

/// The thread that has a key.
#[inline]
fn thread_of(key: i64) -> usize {
    (key.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63) as usize
}

pub(crate) fn ints(batch: &RecordBatch, column: usize) -> &[i64] {
    batch.column(column).as_primitive::<Int64Type>().values()
}
