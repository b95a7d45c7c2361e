//! One thread puts, another takes.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::contest::Sample;
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::pinned::{Pair, run_pair};
use crate::spent::Spent;

use super::CAPACITY_ELEMENTS;
use super::load::{Load, Taker};
use super::queue::{Input, Mode, Output, Queue, chunk_of};

/// Moves `count` elements.
///
/// # Errors
/// When an element is lost, doubled or out of order, or a thread cannot be pinned.
pub(crate) fn run<L: Load, Q: Queue<L::Element>>(
    cpus: CpuPair,
    load: &L,
    mode: Mode,
    count: u64,
) -> Result<Sample, BenchError> {
    in_rounds(load, count, |taker, round| {
        let (mut input, mut output) = Q::open(CAPACITY_ELEMENTS);
        let mut values = load.make(round);
        // Each thread has its end to itself: beside each other on one stack they share lines.
        run_pair(
            cpus,
            move || match mode {
                Mode::Single => put_all(&mut input, &mut values),
                Mode::Chunk => put_chunks(&mut input, &mut values, round),
            },
            move || match mode {
                Mode::Single => take_all(&mut output, taker, round),
                Mode::Chunk => take_chunks(&mut output, taker, round),
            },
        )
    })
}

/// What it takes to move `count` elements, in rounds of as many as are prepared at once; `one` moves
/// those of a round to the taker.
///
/// # Errors
/// When an element is lost, doubled or out of order, or `one` fails.
pub(crate) fn in_rounds<L: Load>(
    load: &L,
    count: u64,
    mut one: impl FnMut(&mut L::Taker, u64) -> Result<Pair<(), ()>, BenchError>,
) -> Result<Sample, BenchError> {
    let (mut wall, mut spent) = (Duration::ZERO, Spent::default());
    let mut left = count;
    while left > 0 {
        let round = left.min(L::ROUND_ELEMENTS_MAX);
        let mut taker = load.taker(round);
        let pair = one(&mut taker, round)?;
        taker.finish()?;
        wall += pair.wall;
        spent += pair.spent;
        left -= round;
    }
    Ok(Sample::rate(count, wall, spent, count * load.bytes()))
}

fn put_all<T>(input: &mut impl Input<T>, values: &mut impl Iterator<Item = T>) {
    let mut backoff = Backoff::light();
    for value in values {
        let mut result = input.put(value);
        while let Err(rejected) = result {
            backoff.pause();
            result = input.put(rejected);
        }
        backoff.reset();
    }
}

fn put_chunks<T>(input: &mut impl Input<T>, values: &mut impl Iterator<Item = T>, count: u64) {
    let mut backoff = Backoff::light();
    let mut left = count;
    while left > 0 {
        match input.put_chunk(values, chunk_of(left)) {
            0 => backoff.pause(),
            put => {
                backoff.reset();
                left -= put as u64;
            }
        }
    }
}

fn take_all<T>(output: &mut impl Output<T>, taker: &mut impl Taker<T>, count: u64) {
    let mut backoff = Backoff::light();
    let mut left = count;
    while left > 0 {
        if let Some(value) = output.take() {
            taker.take(value);
            backoff.reset();
            left -= 1;
        } else {
            backoff.pause();
        }
    }
}

fn take_chunks<T>(output: &mut impl Output<T>, taker: &mut impl Taker<T>, count: u64) {
    let mut backoff = Backoff::light();
    let mut left = count;
    while left > 0 {
        match output.take_chunk(chunk_of(left), |value| taker.take(value)) {
            0 => backoff.pause(),
            taken => {
                backoff.reset();
                left -= taken as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::{Batches, Lines, Words};
    use super::super::{Locked, LockedOnEdge, Ours, Rtrb};
    use super::*;

    fn moves<L: Load, Q: Queue<L::Element>>(load: &L) {
        let cpus = CpuPair::choose(None).unwrap();
        for mode in Mode::ALL {
            let sample = run::<L, Q>(cpus, load, mode, 3_001).unwrap();
            assert!(sample.value > 0.0 && sample.value.is_finite());
            assert_eq!(sample.bytes, 3_001 * load.bytes());
        }
    }

    #[test]
    fn every_queue_moves_every_load_in_order() {
        moves::<_, Ours>(&Words);
        moves::<_, Rtrb>(&Words);
        moves::<_, Locked>(&Words);
        moves::<_, LockedOnEdge>(&Words);
        moves::<_, Ours>(&Lines);
        moves::<_, Rtrb>(&Batches::new());
        moves::<_, Ours>(&Batches::new());
    }
}
