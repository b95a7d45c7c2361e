//! Timers in processing time.

use ringway::clock::ProcessingTime;
use ringway::edge::{Ending, Popped};
use ringway::element::{Drain, StreamElement};
use ringway::error::OperatorError;
use ringway::operator::{Emitter, Operator, Progress};
use ringway::task::{Task, TaskOutcome, TaskState};

use crate::parts::{Batch, batch, data, pop_all, run_out, settle, single, values};

/// Emits -1 every so many milliseconds, from the first step on.
struct Ticking {
    every_ms: i64,
    next: ProcessingTime,
}

impl Ticking {
    fn every(every_ms: i64) -> Self {
        Self { every_ms, next: 0 }
    }
}

impl Operator<Batch, Batch> for Ticking {
    fn process(
        &mut self,
        batch: Batch,
        out: &mut Emitter<'_, Batch>,
    ) -> Result<Progress, OperatorError> {
        out.emit(batch);
        Ok(Progress::Done)
    }

    fn next_timer(&self) -> Option<ProcessingTime> {
        Some(self.next)
    }

    fn on_timer(&mut self, out: &mut Emitter<'_, Batch>) -> Result<Progress, OperatorError> {
        assert!(out.now() >= self.next, "a timer never fires early");
        self.next = out.now() + self.every_ms;
        out.emit(batch([-1]));
        Ok(Progress::Done)
    }
}

#[test]
fn a_timer_fires_when_its_time_has_come_and_not_before() {
    let (_sender, mut task, mut receiver) = single(Ticking::every(20), 64);
    settle(&mut task);
    assert_eq!(values(&pop_all(&mut receiver)), [-1]);
    settle(&mut task);
    let due = task.next_timer().expect("the next timer is known");
    let start = std::time::Instant::now();
    while values(&pop_all(&mut receiver)).is_empty() {
        let _ = task.step();
        assert!(start.elapsed().as_secs() < 10);
    }
    assert!(task.next_timer().unwrap() > due);
    assert!(start.elapsed().as_millis() >= 15, "{:?}", start.elapsed());
}

#[test]
fn a_due_timer_of_a_blocked_task_does_not_keep_its_worker_awake() {
    let (mut sender, mut task, _receiver) = single(Ticking::every(0), 1);
    for n in 0..100 {
        sender.try_push(data([n])).unwrap();
    }
    assert!(matches!(settle(&mut task), TaskState::Blocked));
    assert_eq!(
        task.next_timer(),
        None,
        "room on the output comes first, and rings the bell"
    );
}

#[test]
fn a_timer_that_is_always_due_does_not_starve_the_input() {
    let (mut sender, mut task, mut receiver) = single(Ticking::every(0), 1);
    for n in 0..50 {
        sender.try_push(data([n])).unwrap();
    }
    sender.finish().unwrap();
    let (_, got) = run_out(&mut task, &mut receiver);
    let rows = values(&got).into_iter().filter(|&value| value >= 0);
    assert_eq!(rows.collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
}

#[test]
fn no_timer_fires_after_the_stream_was_stopped_and_the_stop_is_told() {
    let (mut sender, mut task, mut receiver) = single(Ticking::every(0), 1);
    sender.try_push(data([1])).unwrap();
    sender
        .try_push(StreamElement::Drain(Drain::stop(0)))
        .unwrap();
    sender.finish().unwrap();
    let (outcome, got) = run_out(&mut task, &mut receiver);
    assert!(matches!(outcome, TaskOutcome::Stopped), "{outcome:?}");
    assert_eq!(got.last(), Some(&StreamElement::Drain(Drain::stop(0))));
    assert_eq!(receiver.try_pop(), Popped::Ended(Ending::Stopped));
    assert_eq!(task.next_timer(), None);
}

#[test]
fn a_timer_between_the_drain_and_the_close_does_not_make_a_stop_an_end() {
    let (mut sender, mut task, mut receiver) = single(Ticking::every(0), 64);
    sender
        .try_push(StreamElement::Drain(Drain::stop(0)))
        .unwrap();
    for _ in 0..3 {
        let _ = task.step();
    }
    sender.finish().unwrap();
    let (outcome, _) = run_out(&mut task, &mut receiver);
    assert!(matches!(outcome, TaskOutcome::Stopped), "{outcome:?}");
    assert_eq!(receiver.try_pop(), Popped::Ended(Ending::Stopped));
}

#[test]
fn no_timer_fires_after_the_end() {
    let (sender, mut task, mut receiver) = single(Ticking::every(0), 1);
    let _ = task.step();
    sender.finish().unwrap();
    let (outcome, got) = run_out(&mut task, &mut receiver);
    assert!(matches!(outcome, TaskOutcome::Ended), "{outcome:?}");
    let end = got.iter().rposition(|element| !element.is_data()).unwrap();
    assert_eq!(
        end,
        got.len() - 1,
        "the end of time is the last element: {:?}",
        &got[end..]
    );
}
