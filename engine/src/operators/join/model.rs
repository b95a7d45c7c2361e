//! The joins against a model that keeps every row and compares each with each.

use crate::batch::{Either, Payload, Row, Rows};
use crate::element::{StreamElement, Watermark};
use crate::operator::{Operator, SideTag};
use crate::operators::gather::Gather;
use crate::operators::testing::{Harness, Random};
use crate::operators::window::WindowAssigner;

use super::*;

/// Side, event time, key, number.
type Input = (bool, Option<i64>, Option<i64>, i64);
/// Event time, number of the left row, number of the right one.
pub(super) type Output = (i64, Option<i64>, Option<i64>);

/// A row at one of the times at which it joins.
struct Instance {
    time: i64,
    key: Option<i64>,
    number: i64,
}

/// Keeps all rows that were in time.
struct Model {
    kind: JoinKind,
    time: JoinTime,
    left: Vec<Instance>,
    right: Vec<Instance>,
    frontier: i128,
    late: u64,
    untimed: u64,
}

impl Model {
    fn new(kind: JoinKind, time: JoinTime) -> Self {
        Self {
            kind,
            time,
            left: Vec::new(),
            right: Vec::new(),
            frontier: i128::MIN,
            late: 0,
            untimed: 0,
        }
    }

    fn add(&mut self, (is_left, time, key, number): Input) {
        let Some(time) = time else {
            self.untimed += 1;
            return;
        };
        let times = match self.time {
            JoinTime::Interval(_) => vec![time],
            JoinTime::SameWindow(windows) => windows.windows_of(time).map(|of| of.last()).collect(),
        };
        let in_time = times
            .into_iter()
            .filter(|at| i128::from(*at) >= self.frontier);
        let instances: Vec<_> = in_time.map(|time| Instance { time, key, number }).collect();
        self.late += u64::from(instances.is_empty());
        let side = if is_left {
            &mut self.left
        } else {
            &mut self.right
        };
        side.extend(instances);
    }

    fn advance(&mut self, watermark: i64) {
        let frontier = match self.time {
            _ if watermark == i64::MAX => i128::MAX,
            JoinTime::Interval(_) => watermark.into(),
            JoinTime::SameWindow(_) => i128::from(watermark) + 1,
        };
        self.frontier = self.frontier.max(frontier);
    }

    fn matches(&self, left: &Instance, right: &Instance) -> bool {
        let apart = i128::from(right.time) - i128::from(left.time);
        let in_bounds = match self.time {
            JoinTime::Interval(bounds) => {
                i128::from(bounds.lower_ms()) <= apart && apart <= i128::from(bounds.upper_ms())
            }
            JoinTime::SameWindow(_) => apart == 0,
        };
        in_bounds && left.key.is_some() && left.key == right.key
    }

    /// All that must have come out by now.
    fn results(&self) -> Vec<Output> {
        let (mut pairs, mut left_once, mut right_once) = (Vec::new(), Vec::new(), Vec::new());
        let (mut left_alone, mut right_alone) = (Vec::new(), Vec::new());
        let (lower, upper) = match self.time {
            JoinTime::Interval(bounds) => (bounds.lower_ms(), bounds.upper_ms()),
            JoinTime::SameWindow(_) => (0, 0),
        };
        let past = |row: &Instance, reach: i128| {
            row.key.is_none() || i128::from(row.time) + reach < self.frontier
        };
        for left in &self.left {
            let found: Vec<_> = self
                .right
                .iter()
                .filter(|right| self.matches(left, right))
                .collect();
            for right in &found {
                let time = left.time.max(right.time);
                pairs.push((time, Some(left.number), Some(right.number)));
            }
            match found.is_empty() {
                false => left_once.push((left.time, Some(left.number), None)),
                true if past(left, upper.into()) => {
                    left_alone.push((left.time, Some(left.number), None));
                }
                true => {}
            }
        }
        for right in &self.right {
            match self.left.iter().any(|left| self.matches(left, right)) {
                true => right_once.push((right.time, None, Some(right.number))),
                false if past(right, -i128::from(lower)) => {
                    right_alone.push((right.time, None, Some(right.number)));
                }
                false => {}
            }
        }
        let mut results = match self.kind {
            JoinKind::Inner => pairs,
            JoinKind::Left => [pairs, left_alone].concat(),
            JoinKind::Right => [pairs, right_alone].concat(),
            JoinKind::Full => [pairs, left_alone, right_alone].concat(),
            JoinKind::LeftSemi => left_once,
            JoinKind::RightSemi => right_once,
            JoinKind::LeftAnti => left_alone,
            JoinKind::RightAnti => right_alone,
        };
        results.sort_unstable();
        results
    }
}

/// How one form of join is driven.
pub(super) trait Form {
    type Side: Payload;
    type Out: Payload + PartialEq + std::fmt::Debug;
    type Op: Operator<Either<Self::Side, Self::Side>, Self::Out>;

    const NULL_KEYS: bool;

    fn operator(kind: JoinKind, time: JoinTime) -> Self::Op;
    fn batch(rows: &[(Option<i64>, Option<i64>, i64)]) -> Self::Side;
    fn results(kind: JoinKind, batch: &Self::Out) -> Vec<Output>;
    /// Late rows, untimed rows, and whether nothing waits any more.
    fn counts(operator: &Self::Op) -> (u64, u64, bool);
}

pub(super) const LEFT_LATE: usize = 2;
pub(super) const RIGHT_LATE: usize = 3;

fn times(random: &mut Random) -> JoinTime {
    let windows = |size, slide| {
        JoinTime::SameWindow(WindowAssigner::sliding(size, slide, 1).expect("windows"))
    };
    let bounds =
        |lower, upper| JoinTime::Interval(IntervalBounds::new(lower, upper).expect("in order"));
    match random.below(8) {
        0 => windows(10, 10),
        1 => windows(12, 5),
        2 => bounds(0, 0),
        3 => bounds(-12, -4),
        4 => bounds(3, 9),
        5 => bounds(i64::MIN, i64::MAX),
        _ => bounds(-5, 8),
    }
}

/// What to do next in a run.
enum Next {
    Batch(bool, Vec<(Option<i64>, Option<i64>, i64)>),
    Watermark(Watermark),
}

fn script(random: &mut Random, null_keys: bool) -> Vec<Next> {
    let mut script = Vec::new();
    let (mut at, mut number) = (random.between(-50, 50), 0);
    for _ in 0..60 {
        at += random.between(-2, 6);
        script.push(match random.below(5) {
            0 => Next::Watermark(Watermark::active(at - 5)),
            1 => Next::Watermark(Watermark::idle(at + 100)),
            side => {
                let rows = (0..random.below(6)).map(|_| {
                    number += 1;
                    let time = (random.below(12) > 0).then(|| at + random.between(-9, 9));
                    let null = null_keys && random.below(8) == 0;
                    let key = random.below(3) as i64;
                    (time, (!null).then_some(key), number)
                });
                Next::Batch(side == 2, rows.collect())
            }
        });
    }
    script.push(Next::Watermark(Watermark::MAX));
    script
}

fn apply<F: Form>(harness: &mut Harness<F::Op, F::Out, F::Side>, next: &Next) {
    match next {
        Next::Batch(true, rows) => harness.push(Either::Left(F::batch(rows))),
        Next::Batch(false, rows) => harness.push(Either::Right(F::batch(rows))),
        Next::Watermark(watermark) => {
            harness.watermark::<Either<F::Side, F::Side>>(*watermark);
        }
    }
}

pub(super) fn follows_the_model<F: Form>(test: &str) {
    let mut random = Random::new(test);
    for _ in 0..12 {
        for kind in JoinKind::ALL {
            let time = times(&mut random);
            let script = script(&mut random, F::NULL_KEYS);
            one_run::<F>(kind, time, &script);
        }
    }
}

fn one_run<F: Form>(kind: JoinKind, time: JoinTime, script: &[Next]) {
    let mut harness = Harness::new(F::operator(kind, time), usize::MAX);
    let mut narrow = Harness::new(F::operator(kind, time), 1);
    let mut model = Model::new(kind, time);
    let (mut results, mut passed) = (Vec::new(), i64::MIN);
    for next in script {
        match next {
            Next::Batch(is_left, rows) => {
                for (at, key, number) in rows {
                    model.add((*is_left, *at, *key, *number));
                }
            }
            Next::Watermark(watermark) if watermark.idle => {}
            Next::Watermark(watermark) => model.advance(watermark.timestamp),
        }
        apply::<F>(&mut harness, next);
        apply::<F>(&mut narrow, next);
        let elements = harness.take();
        assert_eq!(narrow.take(), elements, "little room changes nothing");
        for element in elements {
            match element {
                StreamElement::Data(batch) => {
                    let new = F::results(kind, &batch);
                    assert!(
                        new.iter().all(|row| row.0 >= passed),
                        "{kind:?}: late output"
                    );
                    results.extend(new);
                }
                StreamElement::Watermark(watermark) if !watermark.idle => {
                    passed = passed.max(watermark.timestamp);
                }
                _ => {}
            }
        }
        results.sort_unstable();
        assert_eq!(results, model.results(), "{kind:?} {time:?}");
    }
    let counts = F::counts(&harness.operator);
    assert_eq!(
        counts,
        (model.late, model.untimed, true),
        "{kind:?} {time:?}"
    );
    let aside = |at| {
        harness
            .take_side(SideTag::new(at))
            .iter()
            .map(Payload::rows)
            .sum::<usize>()
    };
    let aside: usize = [LEFT_LATE, RIGHT_LATE].map(aside).iter().sum();
    assert_eq!(aside as u64, model.late + model.untimed);
}

/// Typed joins.
struct Typed;

type Value = (i64, i64);
type TypedJoin = KeyedJoin<
    i64,
    Value,
    Value,
    (Option<i64>, Option<i64>),
    fn(&Value) -> i64,
    fn(&Value) -> i64,
    fn(Option<&Value>, Option<&Value>) -> (Option<i64>, Option<i64>),
>;

impl Form for Typed {
    type Side = Rows<Value>;
    type Out = Rows<(Option<i64>, Option<i64>)>;
    type Op = TypedJoin;

    const NULL_KEYS: bool = false;

    fn operator(kind: JoinKind, time: JoinTime) -> TypedJoin {
        let late = LateTags {
            left: Some(SideTag::new(LEFT_LATE)),
            right: Some(SideTag::new(RIGHT_LATE)),
        };
        let key: fn(&Value) -> i64 = |row| row.0;
        KeyedJoin::new(
            kind,
            time,
            (key, key),
            |left, right| (left.map(|row| row.1), right.map(|row| row.1)),
            late,
        )
    }

    fn batch(rows: &[(Option<i64>, Option<i64>, i64)]) -> Rows<Value> {
        let row = |&(event_time, key, number): &(Option<i64>, Option<i64>, i64)| Row {
            value: (key.expect("typed keys are not null"), number),
            event_time,
        };
        rows.iter().map(row).collect()
    }

    fn results(_: JoinKind, batch: &Self::Out) -> Vec<Output> {
        let row = |row: &Row<(Option<i64>, Option<i64>)>| {
            let time = row.event_time.expect("results have an event time");
            (time, row.value.0, row.value.1)
        };
        batch.iter().map(row).collect()
    }

    fn counts(operator: &TypedJoin) -> (u64, u64, bool) {
        let nothing = operator.waiting() == (0, 0);
        let counts = operator.row_counts().expect("a join counts rows");
        (counts.late_rows, counts.untimed_rows, nothing)
    }
}

#[test]
fn typed_joins_of_every_kind_follow_the_model() {
    follows_the_model::<Typed>("typed_joins_of_every_kind_follow_the_model");
}

#[test]
fn rows_wait_no_longer_than_a_match_may_come() {
    let time = JoinTime::Interval(IntervalBounds::new(-2, 3).expect("in order"));
    let mut harness: Harness<TypedJoin, <Typed as Form>::Out, Rows<Value>> =
        Harness::new(Typed::operator(JoinKind::Inner, time), 1);
    let rows: Vec<_> = (0..100).map(|n| (Some(n), Some(n), n)).collect();
    harness.push(Either::<_, Rows<Value>>::Left(Typed::batch(&rows)));
    harness.push(Either::<Rows<Value>, _>::Right(Typed::batch(&rows)));
    assert_eq!(harness.operator.waiting(), (100, 100));
    harness.watermark::<Either<Rows<Value>, Rows<Value>>>(Watermark::active(50));
    let (left_from_47, right_from_48) = (53, 52);
    assert_eq!(harness.operator.waiting(), (left_from_47, right_from_48));
}
