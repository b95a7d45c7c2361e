//! Jobs in stages: what a blocking exchange promises.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use ringway::connect::spill::BlockingOptions;
use ringway::connect::{
    ArrowCompression, Collected, CsvSink, CsvSinkOptions, Generator, GeneratorOptions,
    MemorySource, SinkConnector, SourceConnector,
};
use ringway::element::{EVENT_TIME_MAX, StreamElement, Watermark};
use ringway::error::OperatorError;
use ringway::job::{
    BatchStream, Job, JobOutcome, JobReport, Plan, PlanError, PlanOptions, RunOptions, start,
};
use ringway::operator::{Emitter, Operator, Progress, Sink, Source, SourceProgress, Subtask};
use ringway::operators::columnar::{SortKey, SortSpec};
use ringway::partition::Parallelism;
use ringway_shm::Bell;
use ringway_tests::boxed::Boxed;

/// How often something happened, counted by all who hold it.
#[derive(Clone, Default)]
struct Count(Arc<Mutex<u32>>);

impl Count {
    fn add(&self) -> u32 {
        let mut count = self.0.lock().unwrap();
        *count += 1;
        *count
    }

    fn get(&self) -> u32 {
        *self.0.lock().unwrap()
    }
}

fn schema() -> SchemaRef {
    let field = |name| Field::new(name, DataType::Int64, true);
    Arc::new(Schema::new(vec![field("event_time"), field("value")]))
}

fn batch(values: impl IntoIterator<Item = i64>) -> RecordBatch {
    let values: Vec<i64> = values.into_iter().collect();
    let column = || Arc::new(Int64Array::from(values.clone())) as ArrayRef;
    RecordBatch::try_new(schema(), vec![column(), column()]).unwrap()
}

fn values(batches: &[RecordBatch]) -> Vec<i64> {
    let values = batches.iter();
    let values = values.flat_map(|batch| {
        batch
            .column(1)
            .as_primitive::<Int64Type>()
            .values()
            .to_vec()
    });
    values.collect()
}

fn subtasks(count: u32) -> Parallelism {
    Parallelism::new(count).unwrap()
}

fn spilling_to(folder: &Path) -> BlockingOptions {
    BlockingOptions {
        spill_dir: Some(folder.to_owned()),
        ..BlockingOptions::default()
    }
}

/// The numbers from 0, dealt out to the subtasks, with a watermark behind each batch; `read`
/// counts the subtasks that were made.
fn numbers(job: &Job, total: i64, read: &Count) -> BatchStream {
    let read = read.clone();
    job.source("numbers", move |subtask: &Subtask| {
        read.add();
        let (index, step) = (
            subtask.index as usize,
            subtask.parallelism.subtasks() as usize,
        );
        let mine: Vec<i64> = (0..total).skip(index).step_by(step).collect();
        let elements = mine.chunks(10).flat_map(|chunk| {
            let last = chunk[chunk.len() - 1];
            [
                StreamElement::Data(batch(chunk.iter().copied())),
                StreamElement::Watermark(Watermark::active(last)),
            ]
        });
        Ok(MemorySource::new(elements.collect::<Vec<_>>()))
    })
}

/// Passes rows on, and does what it is told when the value `at` comes.
struct Trap {
    at: i64,
    spring: Arc<dyn Fn() -> Result<(), OperatorError> + Send + Sync>,
}

impl Operator<RecordBatch, RecordBatch> for Trap {
    fn process(
        &mut self,
        batch: RecordBatch,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        if values(std::slice::from_ref(&batch)).contains(&self.at) {
            (self.spring)()?;
        }
        out.emit(batch);
        Ok(Progress::Done)
    }
}

trait Trapped {
    fn trap(
        self,
        at: i64,
        spring: impl Fn() -> Result<(), OperatorError> + Send + Sync + 'static,
    ) -> Self;
}

impl Trapped for BatchStream {
    fn trap(
        self,
        at: i64,
        spring: impl Fn() -> Result<(), OperatorError> + Send + Sync + 'static,
    ) -> Self {
        let spring = Arc::new(spring);
        self.process("trap", move |_| {
            Ok(Trap {
                at,
                spring: spring.clone(),
            })
        })
    }
}

/// Fails the first `times` times.
fn failing(times: u32) -> (Count, impl Fn() -> Result<(), OperatorError> + Send + Sync) {
    let count = Count::default();
    let own = count.clone();
    (count, move || match own.add() <= times {
        true => Err(OperatorError::new("no such luck")),
        false => Ok(()),
    })
}

fn csv(
    path: &Path,
) -> impl Fn(&Subtask) -> Result<Boxed<dyn Sink<RecordBatch>>, OperatorError> + Send + Sync + 'static
{
    let options = CsvSinkOptions {
        path: path.to_owned(),
        ..csv_defaults()
    };
    let sink = CsvSink::new(options, Path::new("")).unwrap();
    move |subtask| Ok(Boxed(sink.build(subtask, &schema())))
}

fn csv_defaults() -> CsvSinkOptions {
    let text = "{\"path\": \"unset\"}";
    serde_json::from_str(text).unwrap()
}

fn options(workers: usize, parallelism: u32) -> PlanOptions {
    PlanOptions {
        parallelism: subtasks(parallelism),
        workers: vec![None; workers],
        ..PlanOptions::default()
    }
}

fn run(job: Job, parallelism: u32) -> JobReport {
    job.run_with(&options(2, parallelism), &RunOptions::default())
        .unwrap()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn error(report: &JobReport) -> String {
    match &report.outcome {
        JobOutcome::Failed(error) => error.to_string(),
        other => panic!("the job has not failed: {other:?}"),
    }
}

#[test]
fn every_row_comes_out_once_in_its_order_and_nothing_is_left_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in [(1, 1), (3, 3), (3, 2), (2, 5)] {
        for compression in [
            ArrowCompression::None,
            ArrowCompression::Lz4,
            ArrowCompression::Zstd,
        ] {
            let (job, collected) = (Job::new("stages"), Collected::new());
            let blocking = BlockingOptions {
                compression,
                ..spilling_to(folder.path())
            };
            let read = Count::default();
            numbers(&job, 1000, &read)
                .parallelism(subtasks(from))
                .blocking("spilled", blocking)
                .parallelism(subtasks(to))
                .sink("collect", collected.sink());
            let report = run(job, to);
            assert!(matches!(report.outcome, JobOutcome::Ended), "{report:?}");
            let mut all = values(&collected.batches());
            if (from, to) == (1, 1) {
                assert!(all.is_sorted(), "the order of one subtask stays");
            }
            all.sort_unstable();
            assert_eq!(all, (0..1000).collect::<Vec<_>>());
            let [spill] = &report.spills[..] else {
                panic!("one exchange: {:?}", report.spills)
            };
            assert_eq!(
                (spill.name.as_str(), spill.rows, spill.reads),
                ("spilled", 1000, 1)
            );
            assert!(spill.bytes > 0);
            assert!(entries(folder.path()).is_empty());
        }
    }
}

#[test]
fn watermarks_come_where_they_were_between_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    let (job, collected) = (Job::new("stages"), Collected::new());
    numbers(&job, 30, &Count::default())
        .blocking("spilled", spilling_to(folder.path()))
        .sink("collect", collected.sink());
    run(job, 1);
    let order = collected.take().into_iter().map(|element| match element {
        StreamElement::Data(batch) => values(&[batch])[0],
        StreamElement::Watermark(watermark) => watermark.timestamp,
        other => panic!("{other:?}"),
    });
    let order: Vec<i64> = order.collect();
    // Of the last two, which no row is between, the end says all.
    assert_eq!(order[..6], [0, 9, 10, 19, 20, EVENT_TIME_MAX]);
}

#[test]
fn a_stage_that_fails_is_run_again_without_those_before_it_and_writes_nothing_twice() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let job = Job::new("stages");
    let (read, (tried, spring)) = (Count::default(), failing(1));
    numbers(&job, 1000, &read)
        .blocking("spilled", spilling_to(folder.path()))
        .trap(777, spring)
        .sink_with("file", csv(&out.path().join("out.csv")));
    let report = run(job, 1);
    assert!(matches!(report.outcome, JobOutcome::Ended), "{report:?}");
    assert_eq!((read.get(), tried.get(), report.restarts), (1, 2, 1));
    assert_eq!(report.spills[0].reads, 2);
    let sunk: u64 = report.tasks.iter().map(|task| task.sink_rows).sum();
    assert_eq!(sunk, 1000, "what was spilled or failed is no output");
    let text = std::fs::read_to_string(out.path().join("out.csv")).unwrap();
    let expected: Vec<String> = (0..1000).map(|n| format!("{n},{n}")).collect();
    assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), expected);
    assert_eq!(entries(out.path()).len(), 1, "no unfinished file stays");
    assert!(entries(folder.path()).is_empty());
}

#[test]
fn a_stage_in_the_middle_that_fails_spills_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (job, collected) = (Job::new("stages"), Collected::new());
    let (read, (_, spring)) = (Count::default(), failing(1));
    numbers(&job, 500, &read)
        .blocking("first", spilling_to(folder.path()))
        .trap(444, spring)
        .blocking("second", spilling_to(folder.path()))
        .sink("collect", collected.sink());
    let report = run(job, 1);
    assert!(matches!(report.outcome, JobOutcome::Ended), "{report:?}");
    assert_eq!(values(&collected.batches()), (0..500).collect::<Vec<_>>());
    let reads: Vec<_> = report
        .spills
        .iter()
        .map(|spill| (spill.rows, spill.reads))
        .collect();
    assert_eq!((read.get(), reads), (1, vec![(500, 2), (500, 1)]));
    assert!(entries(folder.path()).is_empty());
}

#[test]
fn a_branch_that_had_ended_is_not_run_again() {
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let job = Job::new("stages");
    let made = Count::default();
    let ended = Count::default();
    let good = numbers(&job, 10, &Count::default()).blocking("good", spilling_to(folder.path()));
    let (counted, csv_of) = (made.clone(), csv(&out.path().join("good.csv")));
    let done = out.path().join("good.csv");
    good.sink_with("good_file", move |subtask| {
        counted.add();
        csv_of(subtask)
    });
    let own = ended.clone();
    numbers(&job, 10, &Count::default())
        .blocking("bad", spilling_to(folder.path()))
        .trap(5, move || {
            // Not before the other branch has written its file and its task is over.
            for _ in 0..2000 {
                if done.exists() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(200));
            match own.add() {
                1 => Err(OperatorError::new("no such luck")),
                _ => Ok(()),
            }
        })
        .sink_with("bad_file", csv(&out.path().join("bad.csv")));
    // On three workers the branches do not share one: this one waits for the other.
    let report = job
        .run_with(&options(3, 1), &RunOptions::default())
        .unwrap();
    assert!(matches!(report.outcome, JobOutcome::Ended), "{report:?}");
    assert_eq!((made.get(), ended.get(), report.restarts), (1, 2, 1));
}

#[test]
fn a_stage_that_goes_on_failing_fails_the_job_and_leaves_nothing() {
    for is_panic in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (job, collected) = (Job::new("stages"), Collected::new());
        let read = Count::default();
        let blocking = BlockingOptions {
            restarts: 2,
            ..spilling_to(folder.path())
        };
        numbers(&job, 100, &read)
            .blocking("spilled", blocking)
            .trap(50, move || match is_panic {
                true => panic!("no such luck"),
                false => Err(OperatorError::new("no such luck")),
            })
            .sink("collect", collected.sink());
        let report = run(job, 1);
        assert!(error(&report).contains("no such luck"));
        assert_eq!(
            (read.get(), report.restarts, report.spills[0].reads),
            (1, 2, 3)
        );
        assert!(entries(folder.path()).is_empty());
    }
}

#[test]
fn a_stage_that_reads_no_blocking_exchange_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let (job, collected) = (Job::new("stages"), Collected::new());
    let read = Count::default();
    let (_, spring) = failing(1);
    numbers(&job, 100, &read)
        .trap(50, spring)
        .blocking("spilled", spilling_to(folder.path()))
        .sink("collect", collected.sink());
    let report = run(job, 1);
    assert!(error(&report).contains("no such luck"));
    assert_eq!((read.get(), report.restarts), (1, 0));
    assert!(collected.batches().is_empty());
    assert!(entries(folder.path()).is_empty());
}

#[test]
fn more_than_may_be_spilled_is_an_error_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (job, collected) = (Job::new("stages"), Collected::new());
    let blocking = BlockingOptions {
        spill_max_bytes: 10_000,
        ..spilling_to(folder.path())
    };
    numbers(&job, 10_000, &Count::default())
        .blocking("spilled", blocking)
        .sink("collect", collected.sink());
    let error = error(&run(job, 2));
    for part in ["spilled.spill", "more than 10000 bytes", "spill_max"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(entries(folder.path()).is_empty());
}

/// What becomes of a job that changes, in a stage of its own, the large file that a stage before
/// has spilled for the one behind.
fn changed_between_stages(change: fn(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (job, collected) = (Job::new("stages"), Collected::new());
    let blocking = BlockingOptions {
        restarts: 0,
        ..spilling_to(folder.path())
    };
    let at = folder.path().to_owned();
    let all = numbers(&job, 1000, &Count::default());
    let one = all.clone().limit(1, 0).blocking("one", blocking.clone());
    let one = one.trap(0, move || {
        for folder in entries(&at) {
            let files = entries(&folder).into_iter();
            files
                .filter(|file| file.extension().is_some_and(|ending| ending == "arrow"))
                .filter(|file| std::fs::metadata(file).is_ok_and(|file| file.len() > 5000))
                .for_each(|file| change(&file));
        }
        Ok(())
    });
    let all = all.blocking("all", blocking.clone());
    all.union(one.blocking("again", blocking))
        .sink("collect", collected.sink());
    let report = run(job, 1);
    let error = error(&report);
    assert!(entries(folder.path()).is_empty());
    error
}

#[test]
fn a_file_that_was_changed_cut_or_removed_between_stages_is_named() {
    let changes: [fn(&Path); 4] = [
        |file| std::fs::remove_file(file).unwrap(),
        |file| {
            std::fs::File::options()
                .write(true)
                .open(file)
                .unwrap()
                .set_len(4000)
                .unwrap()
        },
        |file| {
            let bytes = std::fs::read(file).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            std::fs::write(file, vec![7; bytes.len()]).unwrap();
        },
        |file| {
            let copy = file.with_extension("copy");
            std::fs::copy(file, &copy).unwrap();
            std::fs::rename(copy, file).unwrap();
        },
    ];
    for change in changes {
        let error = changed_between_stages(change);
        assert!(error.contains(".arrow: what was spilled"), "{error}");
    }
}

#[test]
fn a_job_that_is_cancelled_leaves_nothing_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (job, collected) = (Job::new("stages"), Collected::new());
    numbers(&job, 100, &Count::default())
        .blocking("spilled", spilling_to(folder.path()))
        .process("wait", |_| Ok(Never))
        .sink("collect", collected.sink());
    let plan = Plan::new(job.into_graph(), &options(1, 1)).unwrap();
    let mut handle = start(&plan, &RunOptions::default()).unwrap();
    assert_eq!(entries(folder.path()).len(), 1);
    let error = start(&plan, &RunOptions::default())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("running already"), "{error}");
    assert!(handle.wait_timeout(Duration::from_millis(300)).is_none());
    handle.cancel();
    let report = handle.wait();
    assert!(
        matches!(report.outcome, JobOutcome::Cancelled),
        "{report:?}"
    );
    assert!(entries(folder.path()).is_empty());
    // The same plan again, which is dropped.
    drop(start(&plan, &RunOptions::default()).unwrap());
    assert!(entries(folder.path()).is_empty());
}

/// Takes a batch and never goes on.
struct Never;

impl Operator<RecordBatch, RecordBatch> for Never {
    fn process(
        &mut self,
        _batch: RecordBatch,
        _out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<Progress, OperatorError> {
        Ok(Progress::More)
    }

    fn resume(&mut self, _out: &mut Emitter<'_, RecordBatch>) -> Result<Progress, OperatorError> {
        Ok(Progress::More)
    }
}

/// Gives a batch at each poll and never ends by itself.
struct Endless(i64);

impl Source<RecordBatch> for Endless {
    fn open(&mut self, _subtask: &Subtask, _bell: &Bell) -> Result<(), OperatorError> {
        Ok(())
    }

    fn poll(
        &mut self,
        out: &mut Emitter<'_, RecordBatch>,
    ) -> Result<SourceProgress, OperatorError> {
        out.emit(batch([self.0]));
        self.0 += 1;
        Ok(SourceProgress::Ready)
    }
}

#[test]
fn a_job_that_is_drained_processes_what_was_spilled_and_one_that_is_stopped_does_not() {
    for is_drained in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (job, collected) = (Job::new("stages"), Collected::new());
        job.source("endless", |_| Ok(Endless(0)))
            .blocking("spilled", spilling_to(folder.path()))
            .sink("collect", collected.sink());
        let plan = Plan::new(job.into_graph(), &options(1, 1)).unwrap();
        let mut handle = start(&plan, &RunOptions::default()).unwrap();
        assert!(handle.wait_timeout(Duration::from_millis(50)).is_none());
        match is_drained {
            true => handle.drain(),
            false => handle.stop(),
        }
        let report = handle.wait();
        let came = values(&collected.batches());
        if is_drained {
            assert!(matches!(report.outcome, JobOutcome::Ended), "{report:?}");
            assert_eq!(report.spills[0].rows, came.len() as u64);
            assert!(!came.is_empty());
        } else {
            assert!(matches!(report.outcome, JobOutcome::Stopped), "{report:?}");
            assert!(came.is_empty());
        }
        assert!(entries(folder.path()).is_empty());
    }
}

fn planned(job: Job, processes: usize) -> Result<Plan, PlanError> {
    let options = PlanOptions {
        processes,
        ..PlanOptions::default()
    };
    Plan::new(job.into_graph(), &options)
}

#[test]
fn what_would_wait_for_ever_is_refused_by_name() {
    let endless = |job: &Job| job.source("endless", |_| Ok(Endless(0))).unbounded();
    let job = Job::new("blocking");
    endless(&job)
        .blocking("spilled", BlockingOptions::default())
        .sink("collect", Collected::new().sink());
    let refused = planned(job, 1).err().unwrap();
    let named = PlanError::NeverEnds {
        name: "spilled".to_owned(),
        source_name: "endless".to_owned(),
    };
    assert_eq!(refused, named);
    let job = Job::new("sort");
    endless(&job)
        .sort(schema(), SortSpec::new(vec![SortKey::ascending(1)]))
        .unwrap()
        .sink("collect", Collected::new().sink());
    assert!(matches!(planned(job, 1), Err(PlanError::NeverEnds { .. })));
}

#[test]
fn an_exchange_that_is_read_while_it_is_written_is_refused() {
    let job = Job::new("fork");
    let stream = numbers(&job, 10, &Count::default());
    stream
        .clone()
        .blocking("spilled", BlockingOptions::default())
        .union(stream)
        .sink("collect", Collected::new().sink());
    let names = vec!["spilled".to_owned()];
    assert_eq!(
        planned(job, 1).err(),
        Some(PlanError::BlockingWithin { names })
    );
}

#[test]
fn a_job_of_several_processes_has_no_blocking_exchange() {
    let job = Job::new("processes");
    numbers(&job, 10, &Count::default())
        .blocking("spilled", BlockingOptions::default())
        .sink("collect", Collected::new().sink());
    let name = "spilled".to_owned();
    assert_eq!(
        planned(job, 2).err(),
        Some(PlanError::BlockingBetween { name })
    );
}

#[test]
fn sorted_and_limited_rows_are_the_first_of_all() {
    let (job, collected) = (Job::new("first"), Collected::new());
    let generator = Generator::new(GeneratorOptions {
        rows: Some(20_000),
        ..GeneratorOptions::default()
    });
    let generator = generator.unwrap();
    let made = generator.schema();
    let value = made.index_of("value").unwrap();
    let sorted = job
        .source("generator", move |subtask| {
            Ok(Boxed(generator.build(subtask)))
        })
        .sort(made, SortSpec::new(vec![SortKey::descending(value)]))
        .unwrap();
    sorted.limit(5, 2).sink("collect", collected.sink());
    let report = run(job, 3);
    assert!(matches!(report.outcome, JobOutcome::Ended), "{report:?}");
    let rows = collected.batches();
    let rows: Vec<i64> = rows
        .iter()
        .flat_map(|batch| {
            batch
                .column(value)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec()
        })
        .collect();
    assert_eq!(rows.len(), 5);
    assert!(rows.is_sorted_by(|one, other| one >= other), "{rows:?}");
}
