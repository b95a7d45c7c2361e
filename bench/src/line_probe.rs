//! How far apart two cores are: a cache line sent there and back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::backoff::Backoff;
use crate::case::median;
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::pinned::run_pair;

/// Round trips of one probe.
const ROUND_TRIPS: u64 = 8_000;
/// Round trips between two looks at the clock, which takes a fifth of one by itself.
const BLOCK: u64 = 20;
/// Round trips where both parties share a CPU: each costs two switches.
const ROUND_TRIPS_ON_ONE_CPU: u64 = 40;

/// Lines are fetched in pairs, so a word that nothing else may disturb has 128 bytes.
#[repr(align(128))]
struct AloneOnItsLine(AtomicU64);

/// The median over 8,000 round trips, in nanoseconds.
///
/// # Errors
/// When a thread cannot be pinned.
pub(crate) fn line_ns(cpus: CpuPair) -> Result<f64, BenchError> {
    let trips = if cpus.is_one() {
        ROUND_TRIPS_ON_ONE_CPU
    } else {
        ROUND_TRIPS
    };
    // Odd values are on their way out, even ones on their way back.
    let word = AloneOnItsLine(AtomicU64::new(0));
    let pair = run_pair(
        cpus,
        || {
            let mut blocks = Vec::new();
            for block in 0..trips / BLOCK {
                let began = Instant::now();
                for trip in block * BLOCK..(block + 1) * BLOCK {
                    word.0.store(2 * trip + 1, Ordering::Release);
                    wait_for(&word.0, 2 * trip + 2);
                }
                blocks.push(began.elapsed().as_nanos() as f64 / BLOCK as f64);
            }
            median(&blocks)
        },
        || {
            for trip in 0..trips {
                wait_for(&word.0, 2 * trip + 1);
                word.0.store(2 * trip + 2, Ordering::Release);
            }
        },
    )?;
    Ok(pair.first)
}

fn wait_for(word: &AtomicU64, value: u64) {
    let mut backoff = Backoff::spin();
    while word.load(Ordering::Acquire) != value {
        backoff.pause();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_some_time_there_and_back() {
        let line_ns = line_ns(CpuPair::choose(None).unwrap()).unwrap();
        assert!(line_ns > 1.0 && line_ns.is_finite(), "{line_ns}");
    }
}
