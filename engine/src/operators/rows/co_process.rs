//! A user's own logic over two inputs, with timers.

use std::hash::Hash;

use crate::batch::{Either, Row, Rows};
use crate::clock::ProcessingTime;
use crate::element::Watermark;
use crate::error::OperatorError;
use crate::operator::{Emitter, Operator, Progress};

use super::process::{KeyedProcess, Process, ProcessScope, Timer};

/// Logic over the rows of two inputs and the timers of a key. Without a key `K` is `()`.
///
/// Rows of one input come in its order; how the two interleave is not defined, except that
/// the watermark is that of both.
///
/// A stream that is lifted by a threshold which another stream tells:
///
/// ```
/// use ringway::batch::Row;
/// use ringway::connect::Collected;
/// use ringway::error::OperatorError;
/// use ringway::job::Job;
/// use ringway::operators::rows::{CoProcess, ProcessScope};
///
/// /// Keeps numbers above the threshold; those that come before one wait for it.
/// #[derive(Default)]
/// struct Above { threshold: Option<i64>, waiting: Vec<Row<i64>> }
///
/// type Scope<'a> = ProcessScope<'a, (), i64>;
///
/// impl CoProcess<(), i64, i64, i64> for Above {
///     fn on_left(
///         &mut self,
///         (): &(),
///         row: Row<i64>,
///         scope: &mut Scope<'_>,
///     ) -> Result<(), OperatorError> {
///         match self.threshold {
///             Some(threshold) if row.value > threshold => scope.emit(row),
///             Some(_) => {}
///             None => self.waiting.push(row),
///         }
///         Ok(())
///     }
///
///     fn on_right(
///         &mut self,
///         (): &(),
///         row: Row<i64>,
///         scope: &mut Scope<'_>,
///     ) -> Result<(), OperatorError> {
///         self.threshold = Some(row.value);
///         let waiting = std::mem::take(&mut self.waiting);
///         let above = waiting.into_iter().filter(|kept| kept.value > row.value);
///         above.for_each(|kept| scope.emit(kept));
///         Ok(())
///     }
/// }
///
/// let job = Job::new("above");
/// let (numbers, thresholds) = (job.rows("numbers", 0..10_i64), job.rows("thresholds", [6_i64]));
/// let collected = Collected::new();
/// numbers
///     .connect_broadcast(thresholds)
///     .co_process("above", |_| Ok(Above::default()))
///     .sink("collect", collected.sink());
/// job.run()?;
/// assert_eq!(collected.values::<i64>(), [7, 8, 9]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait CoProcess<K, L, R, O>: Send {
    /// A row of the left input.
    ///
    /// # Errors
    /// When the row cannot be processed; the job fails and names the operator.
    fn on_left(
        &mut self,
        key: &K,
        row: Row<L>,
        scope: &mut ProcessScope<'_, K, O>,
    ) -> Result<(), OperatorError>;

    /// A row of the right input.
    ///
    /// # Errors
    /// As for `on_left`.
    fn on_right(
        &mut self,
        key: &K,
        row: Row<R>,
        scope: &mut ProcessScope<'_, K, O>,
    ) -> Result<(), OperatorError>;

    /// A timer of `key` is due.
    ///
    /// # Errors
    /// As for `on_left`.
    fn on_timer(
        &mut self,
        _key: &K,
        _timer: Timer,
        _scope: &mut ProcessScope<'_, K, O>,
    ) -> Result<(), OperatorError> {
        Ok(())
    }
}

/// Runs a [`CoProcess`] on the rows and timers of each key of two inputs.
///
/// It keeps the rules of [`Process`].
pub struct CoProcessing<K, L, R, O, P> {
    process: ProcessEither<K, L, R, O, P>,
}

type ProcessEither<K, L, R, O, P> = Process<K, Either<L, R>, O, KeyOfEither<K, L, R>, ByInput<P>>;

type KeyOfEither<K, L, R> = Box<dyn FnMut(&Either<L, R>) -> K + Send>;

/// A [`CoProcess`] as logic over rows of either input.
struct ByInput<P>(P);

impl<K, L, R, O, P: CoProcess<K, L, R, O>> KeyedProcess<K, Either<L, R>, O> for ByInput<P> {
    fn on_row(
        &mut self,
        key: &K,
        row: Row<Either<L, R>>,
        scope: &mut ProcessScope<'_, K, O>,
    ) -> Result<(), OperatorError> {
        let event_time = row.event_time;
        match row.value {
            Either::Left(value) => self.0.on_left(key, Row { value, event_time }, scope),
            Either::Right(value) => self.0.on_right(key, Row { value, event_time }, scope),
        }
    }

    fn on_timer(
        &mut self,
        key: &K,
        timer: Timer,
        scope: &mut ProcessScope<'_, K, O>,
    ) -> Result<(), OperatorError> {
        self.0.on_timer(key, timer, scope)
    }
}

impl<K, L, R, O, P> CoProcessing<K, L, R, O, P>
where
    K: Eq + Hash + Clone,
    P: CoProcess<K, L, R, O>,
{
    /// An operator that runs `process` on the rows of the left input by `left_key` and on those
    /// of the right input by `right_key`.
    pub fn new(
        mut left_key: impl FnMut(&L) -> K + Send + 'static,
        mut right_key: impl FnMut(&R) -> K + Send + 'static,
        process: P,
    ) -> Self {
        let key: KeyOfEither<K, L, R> = Box::new(move |value| match value {
            Either::Left(value) => left_key(value),
            Either::Right(value) => right_key(value),
        });
        Self {
            process: Process::new(key, ByInput(process)),
        }
    }
}

impl<K, L, R, O, P> Operator<Either<Rows<L>, Rows<R>>, Rows<O>> for CoProcessing<K, L, R, O, P>
where
    K: Eq + Hash + Clone + Send,
    L: Clone + Send + 'static,
    R: Clone + Send + 'static,
    O: Clone + Send + 'static,
    P: CoProcess<K, L, R, O>,
{
    fn process(
        &mut self,
        batch: Either<Rows<L>, Rows<R>>,
        out: &mut Emitter<'_, Rows<O>>,
    ) -> Result<Progress, OperatorError> {
        let rows = match batch {
            Either::Left(rows) => of_input(rows, Either::Left),
            Either::Right(rows) => of_input(rows, Either::Right),
        };
        self.process.process(rows, out)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, Rows<O>>,
    ) -> Result<Progress, OperatorError> {
        self.process.on_watermark(watermark, out)
    }

    fn on_timer(&mut self, out: &mut Emitter<'_, Rows<O>>) -> Result<Progress, OperatorError> {
        self.process.on_timer(out)
    }

    fn next_timer(&self) -> Option<ProcessingTime> {
        self.process.next_timer()
    }

    fn resume(&mut self, out: &mut Emitter<'_, Rows<O>>) -> Result<Progress, OperatorError> {
        self.process.resume(out)
    }
}

fn of_input<T, E>(rows: Rows<T>, side: fn(T) -> E) -> Rows<E> {
    let row = |row: Row<T>| Row {
        value: side(row.value),
        event_time: row.event_time,
    };
    rows.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::element::StreamElement;
    use crate::limits::BATCH_ROWS;
    use crate::operators::testing::{Harness, Random};

    /// Sums the left numbers of a key, counts its right rows, and tells both at the end of each
    /// ten milliseconds.
    #[derive(Default)]
    struct SumAndCount(BTreeMap<(u8, i64), (i64, u64)>);

    type Told = (u8, i64, u64);
    type Input = Either<Rows<(u8, i64)>, Rows<u8>>;
    type Scope<'a> = ProcessScope<'a, u8, Told>;

    impl SumAndCount {
        fn entry(&mut self, key: u8, time: Option<i64>, scope: &mut Scope<'_>) -> &mut (i64, u64) {
            let end = time.expect("all rows have a time").div_euclid(10) * 10 + 9;
            scope.set_event_timer(end);
            self.0.entry((key, end)).or_default()
        }
    }

    impl CoProcess<u8, (u8, i64), u8, Told> for SumAndCount {
        fn on_left(
            &mut self,
            key: &u8,
            row: Row<(u8, i64)>,
            scope: &mut Scope<'_>,
        ) -> Result<(), OperatorError> {
            self.entry(*key, row.event_time, scope).0 += row.value.1;
            Ok(())
        }

        fn on_right(
            &mut self,
            key: &u8,
            row: Row<u8>,
            scope: &mut Scope<'_>,
        ) -> Result<(), OperatorError> {
            self.entry(*key, row.event_time, scope).1 += 1;
            Ok(())
        }

        fn on_timer(
            &mut self,
            key: &u8,
            timer: Timer,
            scope: &mut Scope<'_>,
        ) -> Result<(), OperatorError> {
            let Timer::Event(time) = timer else {
                return Err(OperatorError::new("only event timers are set"));
            };
            if let Some((sum, count)) = self.0.remove(&(*key, time)) {
                scope.emit(Row::at(time, (*key, sum, count)));
            }
            Ok(())
        }
    }

    fn harness(room: usize) -> Harness<impl Operator<Input, Rows<Told>>, Rows<Told>> {
        let process = SumAndCount::default();
        Harness::new(
            CoProcessing::new(|left: &(u8, i64)| left.0, |right: &u8| *right, process),
            room,
        )
    }

    #[test]
    fn both_inputs_of_a_key_meet_in_its_state() {
        let mut random = Random::new("both_inputs_of_a_key_meet_in_its_state");
        let mut harness = harness(1);
        let mut model: BTreeMap<(i64, u8), (i64, u64)> = BTreeMap::new();
        for _ in 0..200 {
            let (key, time) = (random.below(5) as u8, random.between(-100, 100));
            let told = model
                .entry((time.div_euclid(10) * 10 + 9, key))
                .or_default();
            if random.below(2) == 0 {
                told.1 += 1;
                harness.push(Input::Right(Rows::from(vec![Row::at(time, key)])));
            } else {
                let number = random.between(-9, 9);
                told.0 += number;
                harness.push(Input::Left(Rows::from(vec![Row::at(time, (key, number))])));
            }
            if random.below(20) == 0 {
                harness.watermark::<Input>(Watermark::idle(99));
            }
        }
        assert!(harness.take_data().is_empty(), "nothing is due");
        harness.watermark::<Input>(Watermark::MAX);
        let mut told: Vec<_> = harness
            .take_data()
            .into_iter()
            .flatten()
            .map(|row| (row.event_time, row.value))
            .collect();
        told.sort_unstable();
        let expected: Vec<_> = model
            .into_iter()
            .map(|((end, key), (sum, count))| (Some(end), (key, sum, count)))
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn many_timers_of_both_inputs_are_resumable() {
        let run = |room| {
            let mut harness = harness(room);
            let times = 0..2 * BATCH_ROWS as i64;
            let left = times.clone().map(|n| Row::at(10 * n, (1, n)));
            harness.push(Input::Left(left.collect()));
            harness.push(Input::Right(times.map(|n| Row::at(10 * n, 2)).collect()));
            harness.watermark::<Input>(Watermark::MAX);
            harness.take()
        };
        let all = run(usize::MAX);
        assert_eq!(all.len(), 5);
        assert_eq!(all.last(), Some(&StreamElement::Watermark(Watermark::MAX)));
        assert_eq!(run(1), all);
    }
}
