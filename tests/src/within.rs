//! Waiting that fails instead of hanging.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Long enough that only something lost takes so long, on a busy machine too.
pub const LONG: Duration = Duration::from_secs(120);

/// Joins a thread that may take as long as it likes while it moves, and returns what it returned.
///
/// # Panics
/// If it panicked, or `moved` says the same for longer than [`LONG`]; `what` is named then.
pub fn join_while_it_moves<T>(what: &str, thread: JoinHandle<T>, moved: impl Fn() -> u64) -> T {
    while !thread.is_finished() {
        let before = moved();
        until(LONG, what, || thread.is_finished() || moved() != before);
    }
    join_within(LONG, what, thread)
}

/// How often [`one_below`] measures at most.
pub const TRIES: usize = 10;

/// Runs `work` on a thread of its own and returns what it returns.
///
/// # Panics
/// If it panics, or takes longer than `limit`; `what` is named then.
pub fn within<T: Send + 'static>(
    limit: Duration,
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    join_within(limit, what, thread::spawn(work))
}

/// Joins a thread and returns what it returned.
///
/// # Panics
/// If it panicked, or takes longer than `limit`; `what` is named then.
pub fn join_within<T>(limit: Duration, what: &str, thread: JoinHandle<T>) -> T {
    until(limit, what, || thread.is_finished());
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Measures again until it took less than `limit`: a busy machine is slow now and then, what is
/// wrong is slow every time.
///
/// # Panics
/// If none of [`TRIES`] took less; `what` is named then, and what they took.
pub fn one_below(limit: Duration, what: &str, mut measure: impl FnMut() -> Duration) {
    let mut took = Vec::new();
    while took.len() < TRIES {
        let this = measure();
        if this < limit {
            return;
        }
        took.push(this);
    }
    panic!("{what}: never below {limit:?}, but {took:?}");
}

/// Waits until `is_so`.
///
/// # Panics
/// If that takes longer than `limit`; `what` is named then.
pub fn until(limit: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        thread::sleep(Duration::from_micros(200));
    }
}
