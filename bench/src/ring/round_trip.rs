//! One element there and back over two queues, or a wake-up there and back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ringway_shm::{Bell, Consumer, PopError, ring};
use rustix::thread::futex::{Flags, wait, wake};

use crate::backoff::Backoff;
use crate::contest::Sample;
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::pinned::run_pair;

use super::CAPACITY_ELEMENTS;
use super::queue::{Input, Output, Queue};

/// A parked party that is not woken for so long has been forgotten.
const WAKE_MAX: Duration = Duration::from_secs(20);

/// The median round trip over two queues whose ends never sleep, in nanoseconds.
///
/// # Errors
/// When another element comes back than was sent, or a thread cannot be pinned.
pub(crate) fn spinning<Q: Queue<u64>>(cpus: CpuPair, count: u64) -> Result<Sample, BenchError> {
    let (mut out, mut arriving) = Q::open(CAPACITY_ELEMENTS);
    let (mut answer, mut back) = Q::open(CAPACITY_ELEMENTS);
    there_and_back(
        cpus,
        count,
        |number| {
            let _ = out.put(number);
            take_spinning(&mut back)
        },
        || {
            let _ = answer.put(take_spinning(&mut arriving));
        },
    )
}

/// The median round trip over two of our rings whose ends park at once, in nanoseconds.
///
/// # Errors
/// As for [`spinning`].
pub(crate) fn parking(cpus: CpuPair, count: u64) -> Result<Sample, BenchError> {
    // Nobody waits for room here, so the producers' bells never ring.
    let (mut out, mut arriving) = ring(CAPACITY_ELEMENTS, Bell::thread(), Bell::thread());
    let (mut answer, mut back) = ring(CAPACITY_ELEMENTS, Bell::thread(), Bell::thread());
    there_and_back(
        cpus,
        count,
        |number| {
            let _ = out.try_push(number);
            take_parking(&mut back)
        },
        || {
            let _ = answer.try_push(take_parking(&mut arriving));
        },
    )
}

/// The median of two bare wake-ups, there and back, in nanoseconds: what the kernel takes.
///
/// # Errors
/// As for [`spinning`].
pub(crate) fn futex(cpus: CpuPair, count: u64) -> Result<Sample, BenchError> {
    let (out, back) = (AtomicU32::new(0), AtomicU32::new(0));
    let mut seen = 0;
    there_and_back(
        cpus,
        count,
        |number| {
            let next = number as u32 + 1;
            set(&out, next);
            sleep_until(&back, next);
            u64::from(next) - 1
        },
        || {
            seen += 1;
            sleep_until(&out, seen);
            set(&back, seen);
        },
    )
}

/// The median of `count` round trips, each of which begins when the one before is back.
///
/// # Errors
/// As for [`spinning`].
pub(crate) fn there_and_back(
    cpus: CpuPair,
    count: u64,
    mut ask: impl FnMut(u64) -> u64 + Send,
    mut answer: impl FnMut() + Send,
) -> Result<Sample, BenchError> {
    let mut latencies = Latencies::new();
    let mut wrong = 0_u64;
    let pair = run_pair(
        cpus,
        || {
            let mut began = Instant::now();
            for number in 0..count {
                let back = ask(number);
                let now = Instant::now();
                latencies.record(now - began);
                began = now;
                wrong += u64::from(back != number);
            }
        },
        || (0..count).for_each(|_| answer()),
    )?;
    if wrong > 0 {
        return Err(BenchError::new(format!(
            "{wrong} of {count} answers were wrong"
        )));
    }
    let median_ns = latencies.percentile_us(50.0) * 1e3;
    Ok(Sample::latency(median_ns, pair.wall, pair.spent).with_latencies(latencies))
}

fn take_spinning(output: &mut impl Output<u64>) -> u64 {
    let mut backoff = Backoff::spin();
    loop {
        if let Some(value) = output.take() {
            return value;
        }
        backoff.pause();
    }
}

fn take_parking(consumer: &mut Consumer<u64>) -> u64 {
    loop {
        match consumer.try_pop() {
            Ok(value) => return value,
            Err(PopError::Empty) => {}
            Err(ended) => panic!("{ended}"),
        }
        let bell = consumer.consumer_bell();
        bell.arm();
        if consumer.is_ready() {
            bell.disarm();
        } else {
            assert!(bell.park(Some(WAKE_MAX)), "a parked consumer was not woken");
        }
    }
}

fn set(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Release);
    // It fails for addresses that are no futex only.
    let _ = wake(word, Flags::PRIVATE, 1);
}

fn sleep_until(word: &AtomicU32, value: u32) {
    loop {
        let now = word.load(Ordering::Acquire);
        if now == value {
            return;
        }
        // Every error means that the word is to be looked at again.
        let _ = wait(word, Flags::PRIVATE, now, None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ours, Rtrb};
    use super::*;

    #[test]
    fn every_round_trip_takes_some_time() {
        let cpus = CpuPair::choose(None).unwrap();
        let samples = [
            spinning::<Ours>(cpus, 50),
            spinning::<Rtrb>(cpus, 50),
            parking(cpus, 50),
            futex(cpus, 50),
        ];
        for sample in samples {
            let sample = sample.unwrap();
            assert!(sample.value > 0.0, "{sample:?}");
        }
    }

    #[test]
    fn a_round_trip_through_the_kernel_takes_at_least_its_two_system_calls() {
        let cpus = CpuPair::choose(None).unwrap();
        let sample = futex(cpus, 50).unwrap();
        assert!(sample.value > 100.0, "{sample:?}");
        let mean = sample.wall.as_nanos() as f64 / 50.0;
        assert!(
            sample.value < 2.0 * mean,
            "{sample:?}, {mean} ns on average"
        );
    }
}
