//! A keyed exchange between two workers: two sources, one on each, whose rows go to the worker
//! that has their key.
//!
//! Half of the rows cross from one core to the other. By hand it is two threads, each of which
//! splits what it reads by key, adds up its own part, and passes the other on over a ring. The
//! count and the sum of the values of each key are checked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use ringway::batch::{Payload, Row, Rows};
use ringway::clock::ProcessingTime;
use ringway::connect::MemorySource;
use ringway::element::StreamElement;
use ringway::error::OperatorError;
use ringway::job::{Exchange, Job, JobOutcome, Plan, PlanOptions, RunOptions, Stream, start};
use ringway::operator::{Progress, Sink};
use ringway::output::{ByKeyColumns, ByKeyHash};
use ringway::partition::{Key, Parallelism};

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
type Keyed = (i64, i64);

/// What is exchanged in one of its forms.
trait Form: Payload + Sync {
    const NAME: &'static str;

    /// A batch of these rows.
    fn of(rows: &[Keyed]) -> Self;

    /// Rows with the same key go to the same subtask.
    fn by_key() -> Exchange;

    /// The rows for the first of two threads and for the second.
    fn split(&self) -> [Self; 2];

    fn for_each(&self, each: impl FnMut(i64, i64));
}

impl Form for RecordBatch {
    const NAME: &'static str = "job/exchange/batch";

    fn of(rows: &[Keyed]) -> Self {
        let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let (keys, values) = rows.iter().copied().unzip();
        let times = vec![0; rows.len()];
        let columns = [
            ("event_time", column(times)),
            ("key", column(keys)),
            ("value", column(values)),
        ];
        Self::try_from_iter(columns).expect("columns of one length")
    }

    fn by_key() -> Exchange {
        let schema = Self::of(&[]).schema();
        Exchange::key::<Self>(move || {
            let key = ByKeyColumns::bind(&schema, &[1]);
            Box::new(key.expect("an int64 column can be a key"))
        })
    }

    fn split(&self) -> [Self; 2] {
        let columns = [0, 1, 2].map(|at| ints(self, at));
        let mut parts: [[Vec<i64>; 3]; 2] = Default::default();
        for part in parts.iter_mut().flatten() {
            part.reserve(self.num_rows());
        }
        for ((time, key), value) in columns[0].iter().zip(columns[1]).zip(columns[2]) {
            let part = &mut parts[thread_of(*key)];
            part[0].push(*time);
            part[1].push(*key);
            part[2].push(*value);
        }
        parts.map(|columns| {
            let columns = columns.map(|values| Arc::new(Int64Array::from(values)) as ArrayRef);
            let part = Self::try_new(self.schema(), columns.into());
            part.expect("the columns are those of the schema")
        })
    }

    fn for_each(&self, mut each: impl FnMut(i64, i64)) {
        for (key, value) in ints(self, 1).iter().zip(ints(self, 2)) {
            each(*key, *value);
        }
    }
}

impl Form for Rows<Keyed> {
    const NAME: &'static str = "job/exchange/rows";

    fn of(rows: &[Keyed]) -> Self {
        rows.iter().map(|row| Row::at(0, *row)).collect()
    }

    fn by_key() -> Exchange {
        Exchange::key::<Self>(|| Box::new(ByKeyHash::new(|(key, _): &Keyed| key.key_hash())))
    }

    fn split(&self) -> [Self; 2] {
        let mut parts = [(); 2].map(|()| Self::with_capacity(self.len()));
        for row in self {
            parts[thread_of(row.value.0)].push(row.clone());
        }
        parts
    }

    fn for_each(&self, mut each: impl FnMut(i64, i64)) {
        for row in self {
            each(row.value.0, row.value.1);
        }
    }
}

/// Count and sum of the values of each key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sums(Vec<(u64, i64)>);

impl Sums {
    fn none() -> Self {
        Self(vec![(0, 0); KEYS as usize])
    }

    #[inline]
    fn add<B: Form>(&mut self, batch: &B) {
        batch.for_each(|key, value| {
            // Keys from elsewhere would be beyond it, and fail the run.
            let sum = &mut self.0[(key / KEY_STEP) as usize];
            sum.0 += 1;
            sum.1 += value;
        });
    }

    fn add_all(&mut self, other: &Self) {
        for (sum, other) in self.0.iter_mut().zip(&other.0) {
            sum.0 += other.0;
            sum.1 += other.1;
        }
    }

    fn times(&self, count: u64) -> Self {
        let times = |(rows, sum): &(u64, i64)| (rows * count, sum * count as i64);
        Self(self.0.iter().map(times).collect())
    }

    fn require(&self, expected: &Self) -> Result<(), BenchError> {
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
struct SumSink {
    sums: Sums,
    all: Arc<Mutex<Sums>>,
}

impl<B: Form> Sink<B> for SumSink {
    fn write(&mut self, batch: B, _now: ProcessingTime) -> Result<Progress, OperatorError> {
        self.sums.add(&batch);
        Ok(Progress::Done)
    }
}

impl Drop for SumSink {
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
    compare::<RecordBatch>(harness)?;
    compare::<Rows<Keyed>>(harness)
}

fn compare<B: Form>(harness: &mut Harness) -> Result<(), BenchError> {
    if !harness.wants(B::NAME) {
        return Ok(());
    }
    let cpus = harness.settings.cpus;
    let batches: [Arc<[B]>; 2] = [0, 1].map(|source| batches(source, harness.settings.smoke));
    let mut expected = Sums::none();
    batches
        .iter()
        .flat_map(|source| source.iter())
        .for_each(|batch| expected.add(batch));
    let (batches, expected) = (&batches, &expected);
    harness.measure(Contest {
        name: B::NAME.to_owned(),
        unit: "rows/s",
        measure: Measure::Rate,
        baseline_name: "two threads by hand",
        count: 1,
        ours: Box::new(|count| run_job(cpus, batches, count, expected)),
        baseline: Box::new(|count| run_by_hand(cpus, batches, count, expected)),
    })
}

fn batches<B: Form>(source: i64, smoke: bool) -> Arc<[B]> {
    let rows = if smoke { SMOKE_BATCH_ROWS } else { BATCH_ROWS };
    let batch = |batch: i64| {
        let row = |row: i64| {
            let number = (batch * rows + row) * 2 + source;
            (
                number.wrapping_mul(48_271) % 65_521 % KEYS * KEY_STEP,
                number,
            )
        };
        B::of(&(0..rows).map(row).collect::<Vec<_>>())
    };
    (0..BATCHES).map(batch).collect()
}

fn sample<B: Form>(batches: &[Arc<[B]>; 2], count: u64, wall: Duration, spent: Spent) -> Sample {
    let all = || batches.iter().flat_map(|source| source.iter());
    let rows: usize = all().map(Payload::rows).sum();
    let bytes: usize = all().map(Payload::bytes).sum();
    Sample::rate(rows as u64 * count, wall, spent, bytes as u64 * count)
}

fn run_job<B: Form>(
    cpus: CpuPair,
    batches: &[Arc<[B]>; 2],
    count: u64,
    expected: &Sums,
) -> Result<Sample, BenchError> {
    let job = Job::new("exchange");
    let all = Arc::new(Mutex::new(Sums::none()));
    let (sources, repeats) = (batches.clone(), usize::try_from(count)?);
    let stream: Stream<B> = job.source("memory", move |subtask| {
        let batches = &sources[subtask.index as usize];
        let batches = std::iter::repeat_n(batches, repeats).flat_map(|batches| batches.iter());
        Ok(MemorySource::new(batches.cloned().map(StreamElement::Data)))
    });
    let sums = Arc::clone(&all);
    stream.exchange(B::by_key()).sink_with("sums", move |_| {
        Ok(SumSink {
            sums: Sums::none(),
            all: Arc::clone(&sums),
        })
    });
    let options = PlanOptions {
        parallelism: Parallelism::new(2)?,
        workers: vec![Some(cpus.first.0), Some(cpus.second.0)],
        ..PlanOptions::default()
    };
    let plan = Plan::new(job.into_graph(), &options)?;
    let before = Spent::of_process();
    let report = start(&plan, &RunOptions::default())?.wait();
    let spent = Spent::of_process() - before;
    if !matches!(report.outcome, JobOutcome::Ended) {
        let outcome = report.outcome;
        return Err(BenchError::new(format!("the job ended as {outcome:?}")));
    }
    let sums = all.lock().map_err(|_| BenchError::new("a sink panicked"))?;
    sums.require(&expected.times(count))?;
    Ok(sample(batches, count, report.elapsed, spent))
}

fn run_by_hand<B: Form>(
    cpus: CpuPair,
    batches: &[Arc<[B]>; 2],
    count: u64,
    expected: &Sums,
) -> Result<Sample, BenchError> {
    let (to_second, from_first) = rtrb::RingBuffer::new(RING_PARTS);
    let (to_first, from_second) = rtrb::RingBuffer::new(RING_PARTS);
    let pair = run_pair(
        cpus,
        || Party::new(0, to_second, from_second).run(&batches[0], count),
        || Party::new(1, to_first, from_first).run(&batches[1], count),
    )?;
    let mut sums = pair.first;
    sums.add_all(&pair.second);
    sums.require(&expected.times(count))?;
    Ok(sample(batches, count, pair.wall, pair.spent))
}

/// One of the two threads.
struct Party<B> {
    number: usize,
    to_other: Option<rtrb::Producer<B>>,
    from_other: rtrb::Consumer<B>,
    sums: Sums,
}

impl<B: Form> Party<B> {
    fn new(number: usize, to_other: rtrb::Producer<B>, from_other: rtrb::Consumer<B>) -> Self {
        Self {
            number,
            to_other: Some(to_other),
            from_other,
            sums: Sums::none(),
        }
    }

    fn run(mut self, batches: &[B], count: u64) -> Sums {
        for _ in 0..count {
            for batch in batches {
                let [first, second] = batch.split();
                let (own, others) = match self.number {
                    0 => (first, second),
                    _ => (second, first),
                };
                self.sums.add(&own);
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

    fn pass_on(&mut self, mut part: B) {
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
            self.sums.add(&part);
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

fn ints(batch: &RecordBatch, column: usize) -> &[i64] {
    batch.column(column).as_primitive::<Int64Type>().values()
}
