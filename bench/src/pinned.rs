//! Work on the two CPUs of a measurement, and what it took.

use std::panic::resume_unwind;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use ringway::placement::{CpuId, pin_current_thread};

use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::spent::Spent;

/// What two parties gave, and what they took together.
#[derive(Debug)]
pub(crate) struct Pair<A, B> {
    pub(crate) first: A,
    pub(crate) second: B,
    /// From the start of the one that began first to the end of the one that ended last.
    pub(crate) wall: Duration,
    /// What both took of the CPUs.
    pub(crate) spent: Spent,
}

/// Runs one closure on each CPU, from one moment on.
///
/// # Errors
/// When a thread cannot be pinned, or one of the parties panicked.
pub(crate) fn run_pair<A: Send, B: Send>(
    cpus: CpuPair,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> Result<Pair<A, B>, BenchError> {
    let start = Barrier::new(2);
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| timed(cpus.first, &start, first));
        let second = scope.spawn(|| timed(cpus.second, &start, second));
        (first.join(), second.join())
    });
    let (first, second) = (first.map_err(panicked)??, second.map_err(panicked)??);
    let began = first.began.min(second.began);
    Ok(Pair {
        wall: first.ended.max(second.ended) - began,
        spent: first.spent + second.spent,
        first: first.value,
        second: second.value,
    })
}

/// Runs a closure on one CPU; threads that it starts are pinned there too, unless they pin
/// themselves.
///
/// # Errors
/// As for [`run_pair`].
pub(crate) fn run_on<A: Send>(
    cpu: CpuId,
    work: impl FnOnce() -> A + Send,
) -> Result<A, BenchError> {
    let pinned = || {
        pin_current_thread(cpu)?;
        Ok(work())
    };
    thread::scope(|scope| scope.spawn(pinned).join()).map_err(panicked)?
}

/// CPU seconds of all processes that this one has started and that have ended, to a hundredth.
pub(crate) fn ended_children_cpu_s() -> f64 {
    const TICKS_PER_S: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may hold anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(CHILDREN_TICKS_AT).take(2);
    let ticks = ticks.filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_S
}

/// Where the user and system time of ended children stand behind the name.
const CHILDREN_TICKS_AT: usize = 13;

struct Timed<T> {
    value: T,
    began: Instant,
    ended: Instant,
    spent: Spent,
}

fn timed<T>(cpu: CpuId, start: &Barrier, work: impl FnOnce() -> T) -> Result<Timed<T>, BenchError> {
    let pinned = pin_current_thread(cpu);
    // The other party waits here as well, so this comes before giving up.
    start.wait();
    pinned?;
    let (began, spent) = (Instant::now(), Spent::of_thread());
    let value = work();
    Ok(Timed {
        value,
        began,
        ended: Instant::now(),
        spent: Spent::of_thread() - spent,
    })
}

/// A panic with words is an error with these words; any other goes on.
fn panicked(panic: Box<dyn std::any::Any + Send>) -> BenchError {
    let words = match panic.downcast::<String>() {
        Ok(words) => *words,
        Err(panic) => match panic.downcast::<&str>() {
            Ok(words) => (*words).to_owned(),
            Err(panic) => resume_unwind(panic),
        },
    };
    BenchError::new(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parties_run_and_their_time_is_counted() {
        let cpus = CpuPair::choose(None).unwrap();
        let spin = || {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(2) {}
            7
        };
        let pair = run_pair(cpus, spin, spin).unwrap();
        assert_eq!(pair.first + pair.second, 14);
        assert!(pair.wall >= Duration::from_millis(2), "{pair:?}");
        assert!(pair.spent.cpu_s > 0.0, "{pair:?}");
    }

    #[test]
    fn a_party_that_panics_is_an_error_with_its_words() {
        let cpus = CpuPair::choose(None).unwrap();
        let error = run_pair(cpus, || panic!("element 7 is missing"), || ()).unwrap_err();
        assert_eq!(error.to_string(), "element 7 is missing");
    }
}
