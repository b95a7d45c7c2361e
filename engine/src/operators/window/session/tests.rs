//! Both forms of sessions against a model that keeps every row, and against each other.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;

use super::*;
use crate::batch::{Payload, Row, Rows};
use crate::element::{StreamElement, Watermark};
use crate::limits::BATCH_ROWS;
use crate::operator::SideTag;
use crate::operators::testing::{Harness, Random, batch_of_values as batch};
use crate::operators::window::{Count, Extreme, Sum, WindowResult};
use crate::operators::{AggregateKind, AggregateSpec};

type Value = (i64, i64);
/// Event time, start, end, key, count, sum, greatest.
type Result = [i64; 7];
type Out = Rows<WindowResult<i64, ((u64, i64), i64)>>;

fn columnar(
    gap_ms: i64,
    allowed_lateness_ms: u64,
    room: usize,
) -> Harness<SessionAggregate, RecordBatch> {
    let spec = SessionSpec {
        gap_ms,
        key_columns: vec![1],
        aggregates: vec![
            AggregateSpec::count("count"),
            AggregateSpec::of(AggregateKind::Sum, 2, "sum"),
            AggregateSpec::of(AggregateKind::Max, 2, "max"),
        ],
        allowed_lateness_ms,
        late: Some(SideTag::new(4)),
    };
    let operator = SessionAggregate::new(batch(&[]).schema(), spec);
    Harness::new(operator.expect("a fitting spec"), room)
}

fn columnar_results(elements: &[StreamElement<RecordBatch>]) -> Vec<Result> {
    let mut results = Vec::new();
    for element in elements {
        if let StreamElement::Data(batch) = element {
            let cell = |at: usize, row| batch.column(at).as_primitive::<Int64Type>().value(row);
            let row = |row| [0, 1, 2, 3, 4, 5, 6].map(|at| cell(at, row));
            results.extend((0..batch.num_rows()).map(row));
        }
    }
    results
}

fn typed_results(elements: Vec<StreamElement<Out>>) -> Vec<Result> {
    let mut results = Vec::new();
    for element in elements {
        if let StreamElement::Data(rows) = element {
            results.extend(rows.into_iter().map(|row| {
                let WindowResult { key, window, value } = row.value;
                let ((count, sum), max) = value;
                let time = row.event_time.expect("results have a time");
                [
                    time,
                    window.start(),
                    window.end(),
                    key,
                    count as i64,
                    sum,
                    max,
                ]
            }));
        }
    }
    results
}

/// Live sessions as plain lists of rows.
struct Model {
    gap_ms: i64,
    lateness_ms: i64,
    watermark: i64,
    sessions: Vec<ModelSession>,
    late: usize,
}

struct ModelSession {
    key: i64,
    rows: Vec<(i64, i64)>,
    has_told: bool,
    is_changed: bool,
}

impl ModelSession {
    fn last(&self, gap_ms: i64) -> i64 {
        self.rows.iter().map(|row| row.0).max().expect("a row") + gap_ms - 1
    }

    fn result(&self, gap_ms: i64) -> Result {
        let values = self.rows.iter().map(|row| row.1);
        let start = self.rows.iter().map(|row| row.0).min().expect("a row");
        [
            self.last(gap_ms),
            start,
            self.last(gap_ms) + 1,
            self.key,
            self.rows.len() as i64,
            values.clone().sum(),
            values.max().expect("a row"),
        ]
    }
}

impl Model {
    fn add(&mut self, rows: &[Row<Value>]) -> Vec<Result> {
        for row in rows {
            let Some(time) = row.event_time else {
                self.late += 1;
                continue;
            };
            let (gap_ms, key) = (self.gap_ms, row.value.0);
            let near = |of: &ModelSession| {
                of.key == key && of.rows.iter().any(|row| (row.0 - time).abs() < gap_ms)
            };
            if !self.sessions.iter().any(near)
                && time + gap_ms - 1 + self.lateness_ms <= self.watermark
            {
                self.late += 1;
                continue;
            }
            let (mut joined, others): (Vec<_>, Vec<_>) = self.sessions.drain(..).partition(near);
            self.sessions = others;
            let mut rows: Vec<_> = joined.drain(..).flat_map(|of| of.rows).collect();
            rows.push((time, row.value.1));
            let mut session = ModelSession {
                key,
                rows,
                has_told: false,
                is_changed: false,
            };
            session.is_changed = session.last(gap_ms) <= self.watermark;
            session.has_told = session.is_changed;
            self.sessions.push(session);
        }
        let mut changed = Vec::new();
        for session in &mut self.sessions {
            if std::mem::take(&mut session.is_changed) {
                changed.push(session.result(self.gap_ms));
            }
        }
        changed
    }

    fn advance(&mut self, watermark: i64) -> Vec<Result> {
        self.watermark = self.watermark.max(watermark);
        let mut results = Vec::new();
        for session in &mut self.sessions {
            let complete = session.last(self.gap_ms) <= self.watermark;
            if complete && !std::mem::replace(&mut session.has_told, true) {
                results.push(session.result(self.gap_ms));
            }
        }
        let (gap_ms, lateness_ms, watermark) = (self.gap_ms, self.lateness_ms, self.watermark);
        self.sessions
            .retain(|of| of.last(gap_ms).saturating_add(lateness_ms) > watermark);
        results
    }
}

fn one_run(random: &mut Random) {
    let gap_ms = random.between(1, 20);
    let lateness_ms = (random.below(2) * random.below(30)) as i64;
    let mut wide = columnar(gap_ms, lateness_ms as u64, usize::MAX);
    let mut tight = columnar(gap_ms, lateness_ms as u64, 1);
    let number = |value: &Value| value.1;
    let aggregator = ((Count, Sum(number)), Extreme::max(number));
    let late = Some(SideTag::new(4));
    let key = |value: &Value| value.0;
    let typed = KeyedSession::new(key, gap_ms, aggregator, lateness_ms as u64, late);
    let mut typed: Harness<_, Out, Rows<Value>> = Harness::new(typed.expect("a gap"), 1);
    let mut model = Model {
        gap_ms,
        lateness_ms,
        watermark: i64::MIN,
        sessions: Vec::new(),
        late: 0,
    };
    let mut around = random.between(-100, 100);
    for step in 0..50 {
        let mut expected = if step < 49 && random.below(3) > 0 {
            let row = |random: &mut Random| Row {
                value: (random.between(0, 3), random.between(-50, 50)),
                event_time: (random.below(15) > 0).then(|| around + random.between(-40, 40)),
            };
            let rows: Vec<_> = (0..random.below(10)).map(|_| row(random)).collect();
            wide.push(batch(&rows));
            tight.push(batch(&rows));
            typed.push(Rows::from(rows.clone()));
            model.add(&rows)
        } else {
            around += random.between(0, 50);
            let watermark = match (step, random.below(4)) {
                (49, _) => Watermark::MAX,
                (_, 0) => Watermark::idle(around + 500),
                _ => Watermark::active(around - 20),
            };
            wide.watermark::<RecordBatch>(watermark);
            tight.watermark::<RecordBatch>(watermark);
            typed.watermark::<Rows<Value>>(watermark);
            match watermark.idle {
                true => Vec::new(),
                false => model.advance(watermark.timestamp),
            }
        };
        let elements = wide.take();
        assert_eq!(tight.take(), elements, "little room changes nothing");
        let mut results = columnar_results(&elements);
        assert_eq!(typed_results(typed.take()), results, "both forms agree");
        results.sort_unstable();
        expected.sort_unstable();
        assert_eq!(results, expected, "gap {gap_ms}, lateness {lateness_ms}");
    }
    assert_eq!(wide.operator.live(), (0, 0, 0), "all state is freed");
    assert_eq!(typed.operator.live(), 0);
    let late = wide.dropped() as usize;
    assert_eq!(wide.counts(), typed.counts());
    assert_eq!(late, model.late);
    let aside = wide.take_side(SideTag::new(4));
    assert_eq!(aside.iter().map(Payload::rows).sum::<usize>(), late);
    let aside = typed.take_side(SideTag::new(4));
    assert_eq!(aside.iter().map(Payload::rows).sum::<usize>(), late);
}

#[test]
fn sessions_of_both_forms_follow_the_model() {
    let mut random = Random::new("sessions_of_both_forms_follow_the_model");
    (0..60).for_each(|_| one_run(&mut random));
}

#[test]
fn a_row_between_two_sessions_makes_them_one_and_an_end_touches_nothing() {
    let mut harness = columnar(10, 0, 1);
    let row = |time| Row::at(time, (1, 1));
    harness.push(batch(&[row(0), row(10), row(25), row(40)]));
    harness.push(batch(&[row(17)]));
    harness.watermark::<RecordBatch>(Watermark::MAX);
    let results = columnar_results(&harness.take());
    assert_eq!(
        results,
        [
            [9, 0, 10, 1, 1, 1, 1],
            [34, 10, 35, 1, 3, 3, 1],
            [49, 40, 50, 1, 1, 1, 1],
        ]
    );
}

#[test]
fn very_many_sessions_come_out_in_bounded_batches() {
    let many = 2 * BATCH_ROWS as i64 + 1;
    let rows: Vec<_> = (0..many).map(|n| Row::at(n % 7, (n, 1))).collect();
    let run = |room| {
        let mut harness = columnar(10, 0, room);
        harness.push(batch(&rows));
        harness.watermark::<RecordBatch>(Watermark::MAX);
        assert_eq!(harness.operator.live(), (0, 0, 0));
        harness.take()
    };
    let all = run(usize::MAX);
    assert_eq!(all.len(), 4, "three batches and the watermark");
    assert_eq!(run(1), all);
}

#[test]
fn metadata_stays_and_a_key_is_found_by_position() {
    let input = crate::operators::columnar::samples::duplicate_names();
    let spec = SessionSpec {
        gap_ms: 5,
        key_columns: vec![2],
        aggregates: vec![AggregateSpec::of(AggregateKind::Sum, 1, "sum")],
        allowed_lateness_ms: 0,
        late: None,
    };
    let operator = SessionAggregate::new(input.schema(), spec).expect("a fitting spec");
    let mut harness: Harness<_, RecordBatch> = Harness::new(operator, 1);
    harness.push(input);
    harness.watermark::<RecordBatch>(Watermark::MAX);
    let out = harness.take_data();
    assert_eq!(out[0].schema().metadata()["origin"], "t1");
    let column = |at: usize| {
        out[0]
            .column(at)
            .as_primitive::<Int64Type>()
            .values()
            .to_vec()
    };
    assert_eq!((column(3), column(4)), (vec![3, 4], vec![1, 2]));
}

#[test]
fn counts_that_are_all_that_is_asked_for_are_those_among_others() {
    let mut random = Random::new("counts_that_are_all_that_is_asked_for");
    for _ in 0..20 {
        let (gap_ms, lateness_ms) = (random.between(1, 9), random.below(9));
        let spec = SessionSpec {
            gap_ms,
            key_columns: vec![1],
            aggregates: vec![AggregateSpec::count("count")],
            allowed_lateness_ms: lateness_ms,
            late: None,
        };
        let alone = SessionAggregate::new(batch(&[]).schema(), spec).expect("a fitting spec");
        let mut alone: Harness<_, RecordBatch> = Harness::new(alone, 1);
        let mut all = columnar(gap_ms, lateness_ms, 1);
        let mut around = 0;
        for _ in 0..40 {
            around += random.between(0, 6);
            let rows: Vec<Row<Value>> = (0..random.below(20))
                .map(|_| Row {
                    value: (random.between(0, 4), 1),
                    event_time: (random.below(9) > 0).then(|| around + random.between(-15, 9)),
                })
                .collect();
            for harness in [&mut all, &mut alone] {
                harness.push(batch(&rows));
                harness.watermark::<RecordBatch>(Watermark::active(around - 6));
            }
            let first = |batches: Vec<RecordBatch>| -> Vec<RecordBatch> {
                let columns = batches.iter().map(|batch| batch.project(&[0, 1, 2, 3, 4]));
                let columns = columns.map(|batch| batch.expect("five columns").columns().to_vec());
                columns
                    .map(|columns| {
                        let names = ["time", "start", "end", "key", "count"];
                        RecordBatch::try_from_iter(names.into_iter().zip(columns)).expect("named")
                    })
                    .collect()
            };
            assert_eq!(first(alone.take_data()), first(all.take_data()));
        }
    }
}

#[test]
fn one_step_frees_so_many_sessions_and_no_more_though_some_have_results() {
    const SESSIONS: i64 = 200_000;
    // All are freed at the time at which some of those between them give their results.
    let rows: Vec<_> = (0..SESSIONS)
        .map(|n| Row::at(if n % 50_000 == 7 { 1000 } else { 0 }, (n, 1)))
        .collect();
    let mut harness = columnar(10, 1000, usize::MAX);
    harness.push(batch(&rows));
    let number = |value: &Value| value.1;
    let aggregator = ((Count, Sum(number)), Extreme::max(number));
    let typed = KeyedSession::new(|value: &Value| value.0, 10, aggregator, 1000, None);
    let mut typed: Harness<_, Out, Rows<Value>> = Harness::new(typed.expect("a gap"), usize::MAX);
    typed.push(Rows::from(rows));
    for (watermark, results, steps) in [(9, SESSIONS - 4, 1), (1009, 4, 4)] {
        harness.watermark::<RecordBatch>(Watermark::active(watermark));
        assert!(harness.steps >= steps, "{}", harness.steps);
        let told = columnar_results(&harness.take());
        assert_eq!(told.len() as i64, results);
        typed.watermark::<Rows<Value>>(Watermark::active(watermark));
        assert!(typed.steps >= steps, "{}", typed.steps);
        assert_eq!(typed_results(typed.take()), told);
    }
    // Those that gave results last live on.
    assert_eq!(harness.operator.live(), (4, 4, 4));
    assert_eq!(typed.operator.live(), 4);
}

#[test]
fn very_many_sessions_of_a_key_come_in_any_order_in_as_good_as_the_same_time() {
    const SESSIONS: i64 = 60_000;
    let took = |times: &mut dyn Iterator<Item = i64>| {
        let rows: Vec<_> = times.map(|time| Row::at(20 * time, (1, 1))).collect();
        let mut harness = columnar(10, 0, usize::MAX);
        let clock = crate::clock::Clock::start();
        let began = clock.now();
        harness.push(batch(&rows));
        harness.watermark::<RecordBatch>(Watermark::MAX);
        let took = clock.now().since(began);
        let results = columnar_results(&harness.take());
        assert_eq!(results.len() as i64, SESSIONS);
        assert!(results.is_sorted());
        took
    };
    let in_order = took(&mut (0..SESSIONS));
    let backwards = took(&mut (0..SESSIONS).rev());
    assert!(backwards < 20 * in_order, "{backwards:?} and {in_order:?}");
}

std::thread_local! {
    static COPIES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A key that counts how often it is copied.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Copied(i64);

impl Clone for Copied {
    fn clone(&self) -> Self {
        COPIES.set(COPIES.get() + 1);
        Self(self.0)
    }
}

#[test]
fn a_key_is_copied_for_a_session_and_not_for_every_row() {
    let session = KeyedSession::new(|key: &i64| Copied(*key), 10, Count, 0, None);
    let mut harness: Harness<_, Rows<WindowResult<Copied, u64>>, Rows<i64>> =
        Harness::new(session.expect("a gap"), 1);
    let rows = (0..1000).map(|n| Row::at(n, n % 3));
    harness.push(rows.collect::<Rows<i64>>());
    assert!(COPIES.get() <= 6, "{}", COPIES.get());
    harness.watermark::<Rows<i64>>(Watermark::MAX);
    assert_eq!(harness.take_data()[0].len(), 3);
}
