//! Calls off the worker: order, bounds, cuts, and that a worker that waits sleeps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringway_shm::Bell;

use super::*;
use crate::batch::{Row, Rows};
use crate::clock::Clock;
use crate::connect::{Collected, MemorySource};
use crate::element::{Barrier, Drain, StreamElement, Watermark};
use crate::error::OperatorError;
use crate::job::{Job, JobOutcome};
use crate::operator::{Emitter, Operator, Progress, StepScope, Subtask};
use crate::operators::testing::Random;
use crate::task::{Closing, OperatorStage, Stage, StageItem, TaskReport};

fn options(threads: usize, in_flight_max: usize, ordered: bool) -> AsyncMapOptions {
    AsyncMapOptions {
        threads,
        in_flight_max,
        ordered,
    }
}

/// Runs `elements` through calls that take up to a millisecond.
fn run(
    options: AsyncMapOptions,
    elements: Vec<StreamElement<Rows<u64>>>,
) -> Vec<StreamElement<Rows<u64>>> {
    let job = Job::new("calls");
    let collected = Collected::new();
    job.source("source", move |_| Ok(MemorySource::new(elements.clone())))
        .async_map(options, |n: u64| {
            std::thread::sleep(Duration::from_micros(n * 7919 % 1000));
            Ok(n * 10)
        })
        .sink("collect", collected.sink());
    let report = job.run().expect("a plan that works");
    assert!(
        matches!(report.outcome, JobOutcome::Ended),
        "{:?}",
        report.outcome
    );
    collected.take()
}

fn script(random: &mut Random) -> Vec<StreamElement<Rows<u64>>> {
    let mut number = 0;
    let mut elements = Vec::new();
    for step in 0..30 {
        elements.push(match random.below(3) {
            0 => StreamElement::Watermark(Watermark::active(step)),
            _ => StreamElement::Data(Rows::from_iter((0..random.below(9)).map(|_| {
                number += 1;
                Row::at(number as i64, number)
            }))),
        });
    }
    elements
}

/// The rows between each two watermarks.
fn between_watermarks(elements: &[StreamElement<Rows<u64>>], sorted: bool) -> Vec<(Vec<u64>, i64)> {
    let (mut parts, mut rows) = (Vec::new(), Vec::new());
    for element in elements {
        match element {
            StreamElement::Data(batch) => rows.extend(batch.iter().map(|row| row.value)),
            StreamElement::Watermark(watermark) => {
                if sorted {
                    rows.sort_unstable();
                }
                parts.push((std::mem::take(&mut rows), watermark.timestamp));
            }
            _ => {}
        }
    }
    assert!(rows.is_empty(), "nothing comes after the last watermark");
    parts
}

#[test]
fn ordered_results_come_as_their_rows_and_watermarks_did() {
    let mut random = Random::new("ordered_results_come_as_their_rows_and_watermarks_did");
    for (threads, in_flight_max) in [(1, 1), (4, 4), (4, 64)] {
        let elements = script(&mut random);
        let got = run(options(threads, in_flight_max, true), elements.clone());
        let mut expected = elements;
        expected.push(StreamElement::Watermark(Watermark::MAX));
        let mut expected = between_watermarks(&expected, false);
        let tenfold = |part: &mut (Vec<u64>, i64)| part.0.iter_mut().for_each(|n| *n *= 10);
        expected.iter_mut().for_each(tenfold);
        assert_eq!(between_watermarks(&got, false), expected);
        let timed = got.iter().all(|element| match element {
            StreamElement::Data(rows) => rows
                .iter()
                .all(|row| row.event_time == Some(row.value as i64 / 10)),
            _ => true,
        });
        assert!(timed, "event times stay with their rows");
    }
}

#[test]
fn unordered_results_come_before_the_watermark_that_followed_their_rows() {
    let mut random = Random::new("unordered_results_come_before_the_watermark");
    let elements = script(&mut random);
    let got = run(options(4, 32, false), elements.clone());
    let (mut sent, mut came) = (Vec::new(), Vec::new());
    let mut marks = got.iter();
    for element in &elements {
        match element {
            StreamElement::Data(rows) => sent.extend(rows.iter().map(|row| row.value * 10)),
            StreamElement::Watermark(watermark) => {
                for element in marks.by_ref() {
                    match element {
                        StreamElement::Data(rows) => came.extend(rows.iter().map(|row| row.value)),
                        other => {
                            assert_eq!(other, &StreamElement::Watermark(*watermark));
                            break;
                        }
                    }
                }
                assert!(sent.iter().all(|row| came.contains(row)));
            }
            _ => {}
        }
    }
    for element in marks {
        if let StreamElement::Data(rows) = element {
            came.extend(rows.iter().map(|row| row.value));
        }
    }
    came.sort_unstable();
    assert_eq!(came, sent, "every row once");
}

#[test]
fn no_more_calls_are_made_at_a_time_than_there_are_threads() {
    let now = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let job = Job::new("bounded");
    let (calls, collected) = (now.clone(), Collected::new());
    job.rows("rows", 0..60_u64)
        .async_map(options(3, 16, true), move |n| {
            let at_once = calls.0.fetch_add(1, Ordering::SeqCst) + 1;
            calls.1.fetch_max(at_once, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
            calls.0.fetch_sub(1, Ordering::SeqCst);
            Ok(n)
        })
        .sink("collect", collected.sink());
    job.run().expect("a plan that works");
    assert_eq!(collected.values::<u64>().len(), 60);
    assert_eq!(
        now.1.load(Ordering::SeqCst),
        3,
        "three at once, and no more"
    );
}

#[test]
fn a_call_that_fails_or_panics_fails_the_job_and_says_why() {
    for panics in [false, true] {
        let job = Job::new("fails");
        job.rows("rows", 0..10_u64)
            .async_map(AsyncMapOptions::default(), move |n| match n {
                7 if panics => panic!("no such luck"),
                7 => Err(OperatorError::new("no such luck")),
                n => Ok(n),
            })
            .sink("collect", Collected::new().sink());
        let outcome = job.run().expect("a plan that works").outcome;
        let JobOutcome::Failed(error) = outcome else {
            panic!("the job must fail: {outcome:?}");
        };
        assert!(error.to_string().contains("no such luck"), "{error}");
    }
}

/// Waits until its bell rings and a flag is set, and counts how often it is called.
struct Waits {
    flag: Arc<Mutex<Option<Rows<u64>>>>,
    resumed: Arc<AtomicUsize>,
}

impl Operator<Rows<u64>, Rows<u64>> for Waits {
    fn open(&mut self, _: &Subtask, bell: &Bell) -> Result<(), OperatorError> {
        let (flag, bell) = (self.flag.clone(), bell.clone());
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(400));
            *flag.lock().expect("no panic") = Some(Rows::from(vec![Row::untimed(1)]));
            bell.ring();
        });
        Ok(())
    }

    fn process(
        &mut self,
        _: Rows<u64>,
        _: &mut Emitter<'_, Rows<u64>>,
    ) -> Result<Progress, OperatorError> {
        Ok(Progress::More)
    }

    fn resume(&mut self, out: &mut Emitter<'_, Rows<u64>>) -> Result<Progress, OperatorError> {
        self.resumed.fetch_add(1, Ordering::Relaxed);
        match self.flag.lock().expect("no panic").take() {
            Some(rows) => out.emit(rows),
            None => return Ok(Progress::More),
        }
        Ok(Progress::Done)
    }

    fn is_waiting(&self) -> bool {
        true
    }
}

#[test]
fn a_worker_sleeps_while_its_operator_waits_for_something_outside() {
    let job = Job::new("waits");
    let (flag, resumed) = (Arc::new(Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
    let (collected, counted) = (Collected::new(), resumed.clone());
    job.rows("rows", [1_u64])
        .process("waits", move |_| {
            Ok(Waits {
                flag: flag.clone(),
                resumed: counted.clone(),
            })
        })
        .map(|n| n)
        .sink("collect", collected.sink());
    job.run().expect("a plan that works");
    assert_eq!(collected.values::<u64>(), [1]);
    let resumed = resumed.load(Ordering::Relaxed);
    assert!(
        resumed < 10_000,
        "resumed {resumed} times in 400 ms of waiting"
    );
}

/// The end of a chain that remembers what it was given.
#[derive(Clone, Default)]
struct Records(Arc<Mutex<Vec<StageItem<Rows<u64>>>>>);

impl Stage<Rows<u64>> for Records {
    fn open(&mut self, _: &Bell) -> Result<(), (usize, OperatorError)> {
        Ok(())
    }

    fn push(&mut self, item: StageItem<Rows<u64>>, _: &mut StepScope) {
        self.0.lock().expect("no panic").push(item);
    }

    fn resume(&mut self, _: &mut StepScope) -> Progress {
        Progress::Done
    }

    fn overtake(&mut self, _: Barrier, _: &mut StepScope) {}

    fn fire_timers(&mut self, _: &mut StepScope) -> bool {
        false
    }

    fn next_timer(&self) -> Option<i64> {
        None
    }

    fn is_full(&self) -> bool {
        false
    }

    fn is_waiting(&self) -> bool {
        false
    }

    fn commit(&mut self, _: u64, _: &mut StepScope) {}

    fn flush(&mut self, _: &mut StepScope) -> bool {
        true
    }

    fn close(&mut self, _: &Closing, _: &mut StepScope) {}

    fn is_closed(&self) -> bool {
        false
    }

    fn report(&self, _: &mut TaskReport) {}
}

#[test]
fn results_come_before_the_barrier_or_the_stop_that_followed_their_rows() {
    let barrier = StageItem::Element(StreamElement::Barrier(Barrier::aligned(1)));
    let stop = StageItem::Element(StreamElement::Drain(Drain::stop(0)));
    for cut in [barrier, stop, StageItem::End] {
        let records = Records::default();
        let operator = AsyncMap::new(options(2, 8, true), |n: u64| {
            std::thread::sleep(Duration::from_millis(1));
            Ok(n)
        });
        let mut stage = OperatorStage::new(
            Box::new(operator),
            Subtask::single("calls"),
            0,
            0..0,
            Box::new(records.clone()),
        );
        let (mut step, bell) = (StepScope::new(Clock::start()), Bell::thread());
        stage.open(&bell).expect("threads start");
        let rows = Rows::from_iter((0..5).map(Row::untimed));
        stage.push(StageItem::Element(StreamElement::Data(rows)), &mut step);
        stage.push(cut.clone(), &mut step);
        while stage.resume(&mut step) == Progress::More {
            bell.arm();
            if stage.is_waiting() {
                bell.park(Some(Duration::from_secs(10)));
            } else {
                bell.disarm();
            }
        }
        assert!(step.take_error().is_none());
        let mut items = records.0.lock().expect("no panic").clone();
        assert_eq!(items.pop(), Some(cut));
        let rows = items.into_iter().flat_map(|item| match item {
            StageItem::Element(StreamElement::Data(rows)) => rows.into_vec(),
            other => panic!("only rows come before the cut: {other:?}"),
        });
        let values: Vec<u64> = rows.map(|row| row.value).collect();
        assert_eq!(values, [0, 1, 2, 3, 4]);
    }
}
