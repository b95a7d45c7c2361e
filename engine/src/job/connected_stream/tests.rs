//! Whole jobs with two inputs.

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field, Schema};

use super::*;
use crate::batch::Row;
use crate::connect::{Collected, MemorySource};
use crate::job::{Job, JobOutcome, PlanOptions, RunOptions};
use crate::operators::join::IntervalBounds;
use crate::operators::rows::ProcessScope;
use crate::partition::Parallelism;

fn options(parallelism: u32) -> PlanOptions {
    PlanOptions {
        parallelism: Parallelism::new(parallelism).expect("in range"),
        workers: vec![None; 2],
        ..PlanOptions::default()
    }
}

fn run(job: Job, parallelism: u32) {
    let report = job.run_with(&options(parallelism), &RunOptions::default());
    let outcome = report.expect("a plan that works").outcome;
    assert!(matches!(outcome, JobOutcome::Ended), "{outcome:?}");
}

#[test]
fn rows_of_both_streams_with_one_key_meet_on_one_subtask() {
    let job = Job::new("meet");
    let collected = Collected::new();
    let numbers = job.rows("numbers", 0..500_i64);
    let texts = job.rows("texts", (0..500).map(|n: i64| n.to_string()));
    let key = |text: &String| text.parse::<i64>().unwrap_or(-1);
    numbers
        .map(|n| n)
        .connect(texts)
        .key_by(|n| *n, key)
        .process_keys()
        .sink("collect", collected.sink());
    run(job, 4);
    let mut seen = collected.values::<(i64, u32)>();
    seen.sort_unstable();
    assert_eq!(seen.len(), 1000);
    assert!(
        seen.chunks(2).all(|pair| pair[0] == pair[1]),
        "both rows of a key are on one subtask"
    );
}

impl<KL, KR> KeyedConnectedStreams<i64, String, i64, KL, KR>
where
    KL: FnMut(&i64) -> i64 + Clone + Send + Sync + 'static,
    KR: FnMut(&String) -> i64 + Clone + Send + Sync + 'static,
{
    fn process_keys(self) -> DataStream<(i64, u32)> {
        struct Where(u32);
        type Scope<'a> = ProcessScope<'a, i64, (i64, u32)>;
        impl CoProcess<i64, i64, String, (i64, u32)> for Where {
            fn on_left(
                &mut self,
                key: &i64,
                _: Row<i64>,
                scope: &mut Scope<'_>,
            ) -> Result<(), OperatorError> {
                scope.emit(Row::untimed((*key, self.0)));
                Ok(())
            }

            fn on_right(
                &mut self,
                key: &i64,
                _: Row<String>,
                scope: &mut Scope<'_>,
            ) -> Result<(), OperatorError> {
                scope.emit(Row::untimed((*key, self.0)));
                Ok(())
            }
        }
        self.co_process("where", |subtask| Ok(Where(subtask.index)))
    }
}

#[test]
fn every_subtask_sees_every_row_of_a_control_stream() {
    struct Controls(u32);
    type Scope<'a> = ProcessScope<'a, (), (u32, &'static str)>;
    impl CoProcess<(), i64, &'static str, (u32, &'static str)> for Controls {
        fn on_left(
            &mut self,
            (): &(),
            _: Row<i64>,
            _: &mut Scope<'_>,
        ) -> Result<(), OperatorError> {
            Ok(())
        }

        fn on_right(
            &mut self,
            (): &(),
            row: Row<&'static str>,
            scope: &mut Scope<'_>,
        ) -> Result<(), OperatorError> {
            scope.emit(Row::untimed((self.0, row.value)));
            Ok(())
        }
    }
    let job = Job::new("control");
    let collected = Collected::new();
    let control = job.rows("control", ["a", "b"]);
    job.rows("numbers", 0..10_i64)
        .connect_broadcast(control)
        .co_process("controls", |subtask| Ok(Controls(subtask.index)))
        .sink("collect", collected.sink());
    run(job, 3);
    let mut seen = collected.values::<(u32, &str)>();
    seen.sort_unstable();
    assert_eq!(
        seen,
        [(0, "a"), (0, "b"), (1, "a"), (1, "b"), (2, "a"), (2, "b")]
    );
}

#[test]
fn what_makes_a_stream_a_side_shares_the_chain_before_it() {
    let job = Job::new("chains");
    let right = job.rows("right", 0..3_i64).filter(|_| true);
    let collected = Collected::new();
    job.rows("left", 0..3_i64)
        .connect(right.parallelism(Parallelism::new(2).expect("in range")))
        .key_by(|n| *n, |n| *n)
        .co_process("meet", |_| Ok(Nothing))
        .sink("collect", collected.sink());
    let plan = crate::job::Plan::new(job.into_graph(), &options(3)).expect("a plan");
    let chains: Vec<String> = plan
        .chains
        .iter()
        .map(|chain| chain.names.join(">"))
        .collect();
    assert_eq!(
        chains,
        [
            "right",
            "left>meet.left",
            "filter>meet.right",
            "meet>collect"
        ]
    );
}

/// Emits nothing.
struct Nothing;

impl CoProcess<i64, i64, i64, i64> for Nothing {
    fn on_left(
        &mut self,
        _: &i64,
        _: Row<i64>,
        _: &mut ProcessScope<'_, i64, i64>,
    ) -> Result<(), OperatorError> {
        Ok(())
    }

    fn on_right(
        &mut self,
        _: &i64,
        _: Row<i64>,
        _: &mut ProcessScope<'_, i64, i64>,
    ) -> Result<(), OperatorError> {
        Ok(())
    }
}

#[test]
fn a_join_gives_the_same_at_any_parallelism() {
    let within = JoinTime::Interval(IntervalBounds::new(-5, 5).expect("in order"));
    let rows = |step: i64| (0..400_i64).map(move |n| Row::at(n * step, n * step));
    let source = |job: &Job, name: &str, step| {
        job.source(name, move |_| {
            Ok(MemorySource::of_batches(
                [rows(step).collect::<Rows<i64>>()],
            ))
        })
        .parallelism(Parallelism::ONE)
    };
    let expected: Vec<(i64, Option<i64>)> = (0..400)
        .map(|n| n * 2)
        .map(|left| (left, Some(left).filter(|left| left % 3 == 0)))
        .collect();
    for parallelism in [1, 3] {
        let job = Job::new("join");
        let collected = Collected::new();
        let right = source(&job, "right", 3);
        source(&job, "left", 2)
            .connect(right)
            .key_by(|n| *n, |n| *n)
            .join("join", JoinKind::Left, within, |left, right| {
                (left.copied().unwrap_or(-1), right.copied())
            })
            .sink("collect", collected.sink());
        run(job, parallelism);
        let mut values = collected.values::<(i64, Option<i64>)>();
        values.sort_unstable();
        assert_eq!(values, expected);
    }
}

#[test]
fn record_batches_join_by_columns() {
    let batch = |values: Vec<i64>| {
        let schema = Schema::new(vec![
            Field::new("event_time", DataType::Int64, true),
            Field::new("key", DataType::Int64, false),
        ]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(values.clone())),
            Arc::new(Int64Array::from(values)),
        ];
        RecordBatch::try_new(Arc::new(schema), columns).expect("columns and schema agree")
    };
    let (left, right) = (batch((0..50).collect()), batch((25..75).collect()));
    let spec = JoinSpec {
        kind: JoinKind::Inner,
        time: JoinTime::Interval(IntervalBounds::new(0, 0).expect("in order")),
        left_keys: vec![1],
        right_keys: vec![1],
        left_late: None,
        right_late: None,
    };
    let job = Job::new("columns");
    let source = |name: &str, batch: &RecordBatch| {
        let batch = batch.clone();
        job.source(name, move |_| Ok(MemorySource::of_batches([batch.clone()])))
            .parallelism(Parallelism::ONE)
    };
    let connected = source("left", &left).connect(source("right", &right));
    let joined = connected.join("join", &left.schema(), &right.schema(), spec);
    let collected = Collected::new();
    joined
        .expect("a fitting join")
        .0
        .sink("collect", collected.sink());
    run(job, 2);
    let batches = collected.batches();
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 25);
}

/// Tells the subtask of each key, and the control rows that the subtask saw.
struct KeysAndControls(u32);

type KeyedScope<'a> = ProcessScope<'a, Option<i64>, (u32, Option<i64>)>;

impl CoProcess<Option<i64>, i64, bool, (u32, Option<i64>)> for KeysAndControls {
    fn on_left(
        &mut self,
        key: &Option<i64>,
        _: Row<i64>,
        scope: &mut KeyedScope<'_>,
    ) -> Result<(), OperatorError> {
        scope.emit(Row::untimed((self.0, *key)));
        Ok(())
    }

    fn on_right(
        &mut self,
        key: &Option<i64>,
        _: Row<bool>,
        scope: &mut KeyedScope<'_>,
    ) -> Result<(), OperatorError> {
        scope.emit(Row::untimed((self.0, *key)));
        Ok(())
    }
}

#[test]
fn a_control_stream_goes_to_every_subtask_of_a_stream_by_key() {
    let job = Job::new("rules");
    let collected = Collected::new();
    let rules = job.rows("rules", [true]);
    job.rows("numbers", 0..60_i64)
        .key_by(|n| n % 30)
        .connect_broadcast(rules)
        .co_process("check", |subtask| Ok(KeysAndControls(subtask.index)))
        .sink("collect", collected.sink());
    run(job, 3);
    let seen = collected.values::<(u32, Option<i64>)>();
    let controls = seen.iter().filter(|(_, key)| key.is_none()).count();
    assert_eq!(controls, 3, "once on each subtask");
    let mut keys: Vec<_> = seen.iter().filter(|(_, key)| key.is_some()).collect();
    assert_eq!(keys.len(), 60);
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 30, "a key is on one subtask");
}
