//! A user's own keyed logic, with timers.

use std::hash::Hash;

use crate::batch::{Row, Rows};
use crate::clock::ProcessingTime;
use crate::element::{EventTime, Watermark};
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, Operator, Progress};
use crate::operators::state::{TimerQueue, Timers};

/// Calls that one step makes, so that timers which set timers do not hold the core.
const CALLS_MAX: usize = 8192;

/// A timer that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A watermark has reached this event time.
    Event(EventTime),
    /// The clock has reached this processing time.
    Processing(ProcessingTime),
}

/// Logic over the rows and timers of a key. What it remembers is its own, for example a
/// [`KeyedState`](crate::operators::state::KeyedState).
pub trait KeyedProcess<K, T, O>: Send {
    /// A row of `key`.
    ///
    /// # Errors
    /// When the row cannot be processed; the job fails and names the operator.
    fn on_row(
        &mut self,
        key: &K,
        row: Row<T>,
        scope: &mut ProcessScope<'_, K, O>,
    ) -> Result<(), OperatorError>;

    /// A timer of `key` is due.
    ///
    /// # Errors
    /// As for `on_row`.
    fn on_timer(
        &mut self,
        _key: &K,
        _timer: Timer,
        _scope: &mut ProcessScope<'_, K, O>,
    ) -> Result<(), OperatorError> {
        Ok(())
    }
}

/// What a [`KeyedProcess`] can do beside remembering.
pub struct ProcessScope<'a, K, O> {
    key: &'a K,
    output: &'a mut Rows<O>,
    timers: &'a mut Timers<K>,
    watermark: Option<EventTime>,
    now: ProcessingTime,
}

impl<K: Eq + Hash + Clone, O> ProcessScope<'_, K, O> {
    /// Emits a row.
    pub fn emit(&mut self, row: Row<O>) {
        self.output.push(row);
    }

    /// Sets a timer of the key that is due when a watermark reaches `time`: if one has
    /// already, right after this call.
    pub fn set_event_timer(&mut self, time: EventTime) {
        self.timers.event.set(time, self.key.clone());
    }

    /// Takes back the key's timer at event time `time`; returns whether there was one.
    pub fn cancel_event_timer(&mut self, time: EventTime) -> bool {
        self.timers.event.cancel(time, self.key.clone())
    }

    /// Sets a timer of the key that is due when the clock reaches `time`.
    pub fn set_processing_timer(&mut self, time: ProcessingTime) {
        self.timers.processing.set(time, self.key.clone());
    }

    /// Takes back the key's timer at processing time `time`; returns whether there was one.
    pub fn cancel_processing_timer(&mut self, time: ProcessingTime) -> bool {
        self.timers.processing.cancel(time, self.key.clone())
    }

    /// The last watermark; none before the first.
    pub const fn watermark(&self) -> Option<EventTime> {
        self.watermark
    }

    /// Processing time at the start of the step, in milliseconds since the Unix epoch.
    pub const fn now(&self) -> ProcessingTime {
        self.now
    }
}

/// Runs a [`KeyedProcess`] on the rows and timers of each key.
pub struct Process<K, T, O, Key, P> {
    key: Key,
    process: P,
    timers: Timers<K>,
    watermark: Option<EventTime>,
    input: std::vec::IntoIter<Row<T>>,
    output: Rows<O>,
    advancing: Option<Watermark>,
    /// Timers up to this processing time are to be called.
    due: Option<ProcessingTime>,
}

impl<K, T, O, Key, P> Process<K, T, O, Key, P>
where
    K: Eq + Hash + Clone,
    Key: FnMut(&T) -> K,
    P: KeyedProcess<K, T, O>,
{
    /// An operator that runs `process` on rows by their `key`.
    pub fn new(key: Key, process: P) -> Self {
        Self {
            key,
            process,
            timers: Timers {
                event: TimerQueue::default(),
                processing: TimerQueue::default(),
            },
            watermark: None,
            input: Vec::new().into_iter(),
            output: Rows::new(),
            advancing: None,
            due: None,
        }
    }

    /// Does the next thing there is to do; returns false when there is nothing.
    fn advance(&mut self, now: ProcessingTime) -> Result<bool, OperatorError> {
        if let Some((time, key)) = self.due_event_timer() {
            self.call_timer(&key, Timer::Event(time), now)?;
            return Ok(true);
        }
        if let Some((time, key)) = self.due.and_then(|due| self.timers.processing.pop_due(due)) {
            self.call_timer(&key, Timer::Processing(time), now)?;
            return Ok(true);
        }
        let Some(row) = self.input.next() else {
            return Ok(false);
        };
        let key = (self.key)(&row.value);
        let mut scope = ProcessScope {
            key: &key,
            output: &mut self.output,
            timers: &mut self.timers,
            watermark: self.watermark,
            now,
        };
        self.process.on_row(&key, row, &mut scope)?;
        Ok(true)
    }

    fn due_event_timer(&mut self) -> Option<(EventTime, K)> {
        let watermark = self.watermark?;
        self.timers.event.pop_due(watermark)
    }

    fn call_timer(
        &mut self,
        key: &K,
        timer: Timer,
        now: ProcessingTime,
    ) -> Result<(), OperatorError> {
        let mut scope = ProcessScope {
            key,
            output: &mut self.output,
            timers: &mut self.timers,
            watermark: self.watermark,
            now,
        };
        self.process.on_timer(key, timer, &mut scope)
    }
}

impl<K, T, O, Key, P> Operator<Rows<T>, Rows<O>> for Process<K, T, O, Key, P>
where
    K: Eq + Hash + Clone + Send,
    T: Clone + Send + 'static,
    O: Clone + Send + 'static,
    Key: FnMut(&T) -> K + Send,
    P: KeyedProcess<K, T, O>,
{
    fn process(
        &mut self,
        batch: Rows<T>,
        out: &mut Emitter<'_, Rows<O>>,
    ) -> Result<Progress, OperatorError> {
        self.input = batch.into_vec().into_iter();
        self.resume(out)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, Rows<O>>,
    ) -> Result<Progress, OperatorError> {
        if !watermark.idle {
            self.watermark = self.watermark.max(Some(watermark.timestamp));
        }
        self.advancing = Some(watermark);
        self.resume(out)
    }

    fn on_timer(&mut self, out: &mut Emitter<'_, Rows<O>>) -> Result<Progress, OperatorError> {
        self.due = Some(out.now());
        self.resume(out)
    }

    fn next_timer(&self) -> Option<ProcessingTime> {
        self.timers.processing.next()
    }

    fn resume(&mut self, out: &mut Emitter<'_, Rows<O>>) -> Result<Progress, OperatorError> {
        let mut calls = 0;
        loop {
            let mut more = true;
            while more && self.output.len() < BATCH_ROWS && calls < CALLS_MAX {
                more = self.advance(out.now())?;
                calls += 1;
            }
            if self.output.is_empty() {
                match more {
                    true => return Ok(Progress::More),
                    false => break,
                }
            }
            if out.is_full() {
                return Ok(Progress::More);
            }
            let mut rows = std::mem::take(&mut self.output).into_vec();
            if rows.len() > BATCH_ROWS {
                self.output = rows.split_off(BATCH_ROWS).into();
            }
            out.emit(rows.into());
        }
        self.due = None;
        if let Some(watermark) = self.advancing.take() {
            out.watermark(watermark);
        }
        Ok(Progress::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::StreamElement;
    use crate::operators::state::KeyedState;
    use crate::operators::testing::Harness;

    /// Counts rows of a key, and tells the count at the end of its ten milliseconds, or after
    /// 100 ms of silence.
    #[derive(Default)]
    struct Counts(KeyedState<char, u64>);

    impl KeyedProcess<char, char, (char, u64)> for Counts {
        fn on_row(
            &mut self,
            key: &char,
            row: Row<char>,
            scope: &mut ProcessScope<'_, char, (char, u64)>,
        ) -> Result<(), OperatorError> {
            *self.0.value_or_insert_with(*key, || 0) += 1;
            match row.event_time {
                Some(time) => scope.set_event_timer(time - time % 10 + 9),
                None => scope.set_processing_timer(scope.now() + 100),
            }
            Ok(())
        }

        fn on_timer(
            &mut self,
            key: &char,
            timer: Timer,
            scope: &mut ProcessScope<'_, char, (char, u64)>,
        ) -> Result<(), OperatorError> {
            let count = self.0.remove(key).unwrap_or(0);
            scope.emit(match timer {
                Timer::Event(time) => Row::at(time, (*key, count)),
                Timer::Processing(_) => Row::untimed((*key, count)),
            });
            Ok(())
        }
    }

    type Counting = Box<dyn Operator<Rows<char>, Rows<(char, u64)>>>;

    fn counts(room: usize) -> Harness<Counting, Rows<(char, u64)>> {
        let counting = Process::new(|value: &char| *value, Counts::default());
        Harness::new(Box::new(counting), room)
    }

    #[test]
    fn event_timers_fire_at_their_watermark_and_an_idle_one_fires_nothing() {
        let mut harness = counts(1);
        harness.push(Rows::from(vec![
            Row::at(1, 'a'),
            Row::at(2, 'b'),
            Row::at(3, 'a'),
            Row::at(15, 'c'),
        ]));
        harness.watermark::<Rows<char>>(Watermark::idle(100));
        harness.watermark::<Rows<char>>(Watermark::active(9));
        assert_eq!(
            harness.take(),
            vec![
                StreamElement::Watermark(Watermark::idle(100)),
                StreamElement::Data(Rows::from(vec![Row::at(9, ('a', 2)), Row::at(9, ('b', 1))])),
                StreamElement::Watermark(Watermark::active(9)),
            ]
        );
    }

    #[test]
    fn processing_timers_fire_when_the_clock_reaches_them() {
        let mut harness = counts(1);
        harness.time::<Rows<char>>(1000);
        harness.push(Rows::from(vec![Row::untimed('a')]));
        harness.time::<Rows<char>>(1099);
        assert_eq!(harness.take_data(), vec![]);
        harness.time::<Rows<char>>(1100);
        assert_eq!(
            harness.take_data(),
            vec![Rows::from(vec![Row::untimed(('a', 1))])]
        );
    }

    #[test]
    fn a_watermark_that_fires_many_timers_is_resumable() {
        let many = || {
            Rows::from_iter(
                (0..3 * BATCH_ROWS as u32)
                    .map(|n| Row::at(1, char::from_u32(0x1_0000 + n).expect("a character"))),
            )
        };
        let run = |room| {
            let mut harness = counts(room);
            harness.push(many());
            harness.watermark::<Rows<char>>(Watermark::MAX);
            harness.take()
        };
        let all = run(usize::MAX);
        assert_eq!(all.len(), 4, "three batches and the watermark");
        assert_eq!(run(1), all);
    }
}
