//! The operator that calls.

use std::collections::VecDeque;

use ringway_shm::Bell;

use crate::batch::{Row, Rows};
use crate::element::Watermark;
use crate::error::OperatorError;
use crate::limits::BATCH_ROWS;
use crate::operator::{Emitter, Operator, Progress, Subtask};

use super::AsyncMapOptions;
use super::calls::Calls;

/// Replaces each value by what a call gives that may block, such as one to a service. Calls
/// are made on threads of their own, several at a time; the worker goes on meanwhile.
///
/// A watermark, and whatever cuts the stream, comes out after the results of all rows before
/// it. Results come in the order of their rows, or each as soon as it is there. A call that
/// fails or panics fails the job. When the job is cancelled, calls that are under way are not
/// waited for.
///
/// ```
/// use ringway::connect::Collected;
/// use ringway::job::Job;
/// use ringway::operators::async_map::AsyncMapOptions;
///
/// let job = Job::new("lookups");
/// let collected = Collected::new();
/// job.rows("names", ["a", "bc"])
///     .async_map(AsyncMapOptions::default(), |name| Ok(name.len()))
///     .sink("collect", collected.sink());
/// job.run()?;
/// assert_eq!(collected.values::<usize>(), [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AsyncMap<T, U, F> {
    options: AsyncMapOptions,
    call: F,
    calls: Option<Calls<T, U>>,
    /// Rows that no thread has taken yet.
    waiting: VecDeque<Row<T>>,
    /// What is to come out, in order, from number `first` on.
    under_way: VecDeque<Item<U>>,
    first: u64,
    output: Rows<U>,
    /// All that is under way is to come out before the call is done.
    is_settling: bool,
}

/// Something that is to come out.
enum Item<U> {
    Called,
    Done(Row<U>),
    /// A row whose result is out.
    Out,
    Watermark(Watermark),
}

impl<T, U, F> AsyncMap<T, U, F>
where
    T: Send + 'static,
    U: Clone + Send + 'static,
    F: FnMut(T) -> Result<U, OperatorError> + Clone + Send + 'static,
{
    /// An operator that replaces each value by `call` of it; each thread has a copy of `call`.
    ///
    /// # Panics
    /// When the options have no thread, or less in flight than threads.
    pub fn new(options: AsyncMapOptions, call: F) -> Self {
        assert!(options.threads > 0, "calls need a thread");
        assert!(
            options.in_flight_max >= options.threads,
            "every thread may have a row"
        );
        Self {
            options,
            call,
            calls: None,
            waiting: VecDeque::new(),
            under_way: VecDeque::new(),
            first: 0,
            output: Rows::new(),
            is_settling: false,
        }
    }

    /// Gives rows to threads that have none.
    fn begin_calls(&mut self) -> Result<(), OperatorError> {
        let not_open = || OperatorError::new("this operator is not open");
        let calls = self.calls.as_mut().ok_or_else(not_open)?;
        while self.under_way.len() < self.options.in_flight_max
            && let Some(row) = self.waiting.pop_front()
        {
            let number = self.first + self.under_way.len() as u64;
            if let Err(row) = calls.begin(number, row) {
                self.waiting.push_front(row);
                break;
            }
            self.under_way.push_back(Item::Called);
        }
        Ok(())
    }

    /// Takes the results that are there; returns whether there were any.
    fn take_results(&mut self) -> Result<bool, OperatorError> {
        let mut any = false;
        let Some(calls) = &mut self.calls else {
            return Ok(false);
        };
        while self.output.len() < BATCH_ROWS
            && let Some((number, row)) = calls.next_done()?
        {
            any = true;
            let item = &mut self.under_way[(number - self.first) as usize];
            *item = match self.options.ordered {
                true => Item::Done(row),
                false => {
                    self.output.push(row);
                    Item::Out
                }
            };
        }
        Ok(any)
    }

    /// Emits what is at its turn; returns whether there was room.
    fn emit(&mut self, out: &mut Emitter<'_, Rows<U>>) -> bool {
        loop {
            let is_watermark = match self.under_way.front() {
                Some(Item::Called) | None => break,
                Some(item) => matches!(item, Item::Watermark(_)),
            };
            if is_watermark && !self.flush(out) {
                return false;
            }
            self.first += 1;
            match self.under_way.pop_front() {
                Some(Item::Watermark(watermark)) => out.watermark(watermark),
                Some(Item::Done(row)) => self.output.push(row),
                _ => {}
            }
        }
        self.flush(out)
    }

    fn flush(&mut self, out: &mut Emitter<'_, Rows<U>>) -> bool {
        if self.output.is_empty() {
            return true;
        }
        if out.is_full() {
            return false;
        }
        out.emit(std::mem::take(&mut self.output));
        true
    }

    fn go_on(&mut self, out: &mut Emitter<'_, Rows<U>>) -> Result<Progress, OperatorError> {
        loop {
            self.begin_calls()?;
            let any = self.take_results()?;
            if !self.emit(out) {
                return Ok(Progress::More);
            }
            if !any {
                break;
            }
        }
        let is_done = self.waiting.is_empty() && (!self.is_settling || self.under_way.is_empty());
        if !is_done {
            return Ok(Progress::More);
        }
        self.is_settling = false;
        Ok(Progress::Done)
    }
}

impl<T, U, F> Operator<Rows<T>, Rows<U>> for AsyncMap<T, U, F>
where
    T: Clone + Send + 'static,
    U: Clone + Send + 'static,
    F: FnMut(T) -> Result<U, OperatorError> + Clone + Send + 'static,
{
    fn open(&mut self, subtask: &Subtask, bell: &Bell) -> Result<(), OperatorError> {
        let name = format!("ringway-{}", subtask.name);
        let threads = self.options.threads;
        self.calls = Some(Calls::start(&name, threads, &self.call, bell)?);
        Ok(())
    }

    fn process(
        &mut self,
        batch: Rows<T>,
        out: &mut Emitter<'_, Rows<U>>,
    ) -> Result<Progress, OperatorError> {
        self.waiting.extend(batch);
        self.go_on(out)
    }

    fn on_watermark(
        &mut self,
        watermark: Watermark,
        out: &mut Emitter<'_, Rows<U>>,
    ) -> Result<Progress, OperatorError> {
        self.under_way.push_back(Item::Watermark(watermark));
        self.go_on(out)
    }

    fn on_end(&mut self, out: &mut Emitter<'_, Rows<U>>) -> Result<Progress, OperatorError> {
        self.settle(out)
    }

    fn resume(&mut self, out: &mut Emitter<'_, Rows<U>>) -> Result<Progress, OperatorError> {
        self.go_on(out)
    }

    fn is_waiting(&self) -> bool {
        let calls = self.calls.as_ref();
        let waits = |calls: &Calls<T, U>| calls.under_way() > 0 && !calls.is_any_done();
        self.output.is_empty() && calls.is_some_and(waits)
    }

    fn is_ready(&self) -> bool {
        self.calls.as_ref().is_some_and(Calls::is_any_done)
    }

    fn on_ready(&mut self, out: &mut Emitter<'_, Rows<U>>) -> Result<Progress, OperatorError> {
        self.go_on(out)
    }

    fn settle(&mut self, out: &mut Emitter<'_, Rows<U>>) -> Result<Progress, OperatorError> {
        self.is_settling = true;
        self.go_on(out)
    }
}
