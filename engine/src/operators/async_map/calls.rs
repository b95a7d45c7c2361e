//! The threads that call, each with one call at a time.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ringway_shm::{Bell, Consumer, PopError, Producer, ring};

use crate::batch::Row;
use crate::error::OperatorError;
use crate::placement::spawn_side_thread;

/// A row on its way to a thread and back, with its number.
struct Numbered<T> {
    number: u64,
    value: T,
}

type Answer<U> = Numbered<Result<Row<U>, OperatorError>>;

/// The threads of one subtask. When this is dropped each ends after the call that it is in.
pub(super) struct Calls<T, U> {
    lines: Vec<Line<T, U>>,
}

/// The way to one thread and back.
struct Line<T, U> {
    requests: Producer<Numbered<Row<T>>>,
    answers: Consumer<Answer<U>>,
    is_busy: bool,
}

impl<T: Send + 'static, U: Send + 'static> Calls<T, U> {
    /// Starts `threads` threads that call copies of `call`, and ring `bell` after each call.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub(super) fn start<F>(
        name: &str,
        threads: usize,
        call: &F,
        bell: &Bell,
    ) -> Result<Self, OperatorError>
    where
        F: FnMut(T) -> Result<U, OperatorError> + Clone + Send + 'static,
    {
        let mut lines = Vec::with_capacity(threads);
        for _ in 0..threads {
            let side = Bell::thread();
            let (requests, taken) = ring(1, bell.clone(), side.clone());
            let (told, answers) = ring(1, side, bell.clone());
            let call = call.clone();
            spawn_side_thread(name, move || answer_all(taken, told, call))?;
            lines.push(Line {
                requests,
                answers,
                is_busy: false,
            });
        }
        Ok(Self { lines })
    }

    /// Calls for row `number`, or gives the row back when every thread is busy.
    pub(super) fn begin(&mut self, number: u64, row: Row<T>) -> Result<(), Row<T>> {
        let Some(line) = self.lines.iter_mut().find(|line| !line.is_busy) else {
            return Err(row);
        };
        line.is_busy = true;
        let request = Numbered { number, value: row };
        line.requests
            .try_push(request)
            .map_err(|refused| refused.into_inner().value)
    }

    /// The number and the result of a call that is done, if there is one.
    ///
    /// # Errors
    /// When a call failed or panicked.
    pub(super) fn next_done(&mut self) -> Result<Option<(u64, Row<U>)>, OperatorError> {
        for line in self.lines.iter_mut().filter(|line| line.is_busy) {
            match line.answers.pop_quiet() {
                Ok(answer) => {
                    line.is_busy = false;
                    return Ok(Some((answer.number, answer.value?)));
                }
                Err(PopError::Empty) => {}
                Err(PopError::Finished | PopError::Abandoned) => {
                    return Err(OperatorError::new("a thread that calls is gone"));
                }
            }
        }
        Ok(None)
    }

    /// Whether a call is done.
    pub(super) fn is_any_done(&self) -> bool {
        let mut busy = self.lines.iter().filter(|line| line.is_busy);
        busy.any(|line| line.answers.is_ready())
    }

    /// Calls that are under way.
    pub(super) fn under_way(&self) -> usize {
        self.lines.iter().filter(|line| line.is_busy).count()
    }
}

/// What a thread does until its operator is gone.
fn answer_all<T, U, F>(
    mut requests: Consumer<Numbered<Row<T>>>,
    mut answers: Producer<Answer<U>>,
    mut call: F,
) where
    F: FnMut(T) -> Result<U, OperatorError>,
{
    loop {
        let Numbered { number, value: row } = match requests.pop_blocking(None) {
            Ok(request) => request,
            Err(PopError::Empty) => continue,
            Err(PopError::Finished | PopError::Abandoned) => return,
        };
        let event_time = row.event_time;
        // A call that panicked fails the job, so nothing broken in it is relied on.
        let value = match catch_unwind(AssertUnwindSafe(|| call(row.value))) {
            Ok(value) => value.map(|value| Row { value, event_time }),
            Err(panic) => Err(OperatorError::new(format!(
                "a call panicked: {}",
                panic_text(&*panic)
            ))),
        };
        if answers
            .push_blocking(Numbered { number, value }, None)
            .is_err()
        {
            return;
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is not text".to_owned())
}
