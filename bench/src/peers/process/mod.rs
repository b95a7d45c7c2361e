//! Within a process: queues from one thread to another that people would pick instead of ours.
//!
//! A channel comes in two forms. Polled, it waits as ours does, in user space for some 400 ns
//! between two looks; `blocking` is its own way to wait, as most of its users have it. None but
//! rtrb and tokio has a way to move many elements at once: in chunks they move them one by one.

#[cfg(feature = "crossbeam-channel")]
mod crossbeam;
#[cfg(feature = "flume")]
mod flume;
mod standard;
mod tasks;
mod tokio_mpsc;

use std::time::Duration;

use crate::contest::{Contender, Contest, Harness, Measure};
use crate::error::BenchError;
use crate::ring::load::{Batches, Lines, Load, Words};
use crate::ring::queue::{Mode, Queue};
use crate::ring::{Locked, LockedOnEdge, Ours, Rtrb, round_trip, stream};

use standard::Standard;
use tokio_mpsc::Tokio;

#[cfg(feature = "crossbeam-channel")]
use crossbeam::Crossbeam;

/// Elements, and round trips, of a run that is only checked.
const SMOKE_ELEMENTS: u64 = 20_000;
const SMOKE_ROUND_TRIPS: u64 = 200;

/// A blocking channel from which nothing comes for so long has lost an element.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// Measures all cases of `peers/process`.
///
/// # Errors
/// When an element is lost, doubled or out of order, or a thread cannot be pinned.
pub(super) fn measure(harness: &mut Harness) -> Result<(), BenchError> {
    streams(harness, &Words)?;
    streams(harness, &Lines)?;
    streams(harness, &Batches::new())?;
    round_trips(harness)
}

/// The channels that a build may be without.
const OPTIONAL: [(&str, bool); 2] = [
    ("crossbeam-channel", cfg!(feature = "crossbeam-channel")),
    ("flume", cfg!(feature = "flume")),
];

fn leave_out_unbuilt(harness: &mut Harness, name: &str) {
    for (channel, is_built) in OPTIONAL {
        if !is_built {
            harness.leave_out_unbuilt(name, channel, channel);
        }
    }
}

fn streams<L: Load>(harness: &mut Harness, load: &L) -> Result<(), BenchError> {
    polled::<L, Rtrb>(harness, load)?;
    polled::<L, Standard<false>>(harness, load)?;
    polled::<L, Tokio>(harness, load)?;
    #[cfg(feature = "crossbeam-channel")]
    polled::<L, Crossbeam<false>>(harness, load)?;
    #[cfg(feature = "flume")]
    polled::<L, flume::Flume<false>>(harness, load)?;

    blocking::<L, Locked>(harness, load)?;
    blocking::<L, LockedOnEdge>(harness, load)?;
    blocking::<L, Standard<true>>(harness, load)?;
    #[cfg(feature = "crossbeam-channel")]
    blocking::<L, Crossbeam<true>>(harness, load)?;
    #[cfg(feature = "flume")]
    blocking::<L, flume::Flume<true>>(harness, load)?;

    let cpus = harness.settings.cpus;
    for mode in Mode::ALL {
        leave_out_unbuilt(harness, &case_name::<L>(mode));
        let tasks = Box::new(move |count| tasks::run(cpus, load, mode, count));
        compare(harness, load, mode, tasks::NAME, tasks)?;
    }
    Ok(())
}

/// A queue that waits as ours does, one by one and in chunks.
fn polled<L: Load, Q: Queue<L::Element>>(
    harness: &mut Harness,
    load: &L,
) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    for mode in Mode::ALL {
        let queue = Box::new(move |count| stream::run::<L, Q>(cpus, load, mode, count));
        compare(harness, load, mode, Q::NAME, queue)?;
    }
    Ok(())
}

/// A queue that sleeps, one by one: chunks of it would be the same.
fn blocking<L: Load, Q: Queue<L::Element>>(
    harness: &mut Harness,
    load: &L,
) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    let mode = Mode::Single;
    let queue = Box::new(move |count| stream::run::<L, Q>(cpus, load, mode, count));
    compare(harness, load, mode, Q::NAME, queue)
}

fn compare<L: Load>(
    harness: &mut Harness,
    load: &L,
    mode: Mode,
    baseline_name: &'static str,
    baseline: Contender<'_>,
) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    harness.measure(Contest {
        name: case_name::<L>(mode),
        unit: "elements/s",
        measure: Measure::Rate,
        baseline_name,
        count: SMOKE_ELEMENTS,
        ours: Box::new(|count| stream::run::<L, Ours>(cpus, load, mode, count)),
        baseline,
    })
}

fn case_name<L: Load>(mode: Mode) -> String {
    format!("peers/process/{}/{}", L::NAME, mode.name())
}

const SPIN: &str = "peers/process/rtt/spin";
const PARK: &str = "peers/process/rtt/park";

fn round_trips(harness: &mut Harness) -> Result<(), BenchError> {
    leave_out_unbuilt(harness, SPIN);
    leave_out_unbuilt(harness, PARK);
    round_trip_of::<Rtrb>(harness, SPIN)?;
    round_trip_of::<Standard<false>>(harness, SPIN)?;
    round_trip_of::<Tokio>(harness, SPIN)?;
    #[cfg(feature = "crossbeam-channel")]
    round_trip_of::<Crossbeam<false>>(harness, SPIN)?;
    #[cfg(feature = "flume")]
    round_trip_of::<flume::Flume<false>>(harness, SPIN)?;

    round_trip_of::<Locked>(harness, PARK)?;
    round_trip_of::<Standard<true>>(harness, PARK)?;
    #[cfg(feature = "crossbeam-channel")]
    round_trip_of::<Crossbeam<true>>(harness, PARK)?;
    #[cfg(feature = "flume")]
    round_trip_of::<flume::Flume<true>>(harness, PARK)?;
    let cpus = harness.settings.cpus;
    let tasks = Box::new(move |count| tasks::round_trips(cpus, count));
    compare_round_trips(harness, PARK, tasks::NAME, tasks)
}

fn round_trip_of<Q: Queue<u64>>(harness: &mut Harness, name: &str) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    let queue = Box::new(move |count| round_trip::spinning::<Q>(cpus, count));
    compare_round_trips(harness, name, Q::NAME, queue)
}

fn compare_round_trips(
    harness: &mut Harness,
    name: &str,
    baseline_name: &'static str,
    baseline: Contender<'_>,
) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    harness.measure(Contest {
        name: name.to_owned(),
        unit: "ns",
        measure: Measure::Latency,
        baseline_name,
        count: SMOKE_ROUND_TRIPS,
        ours: match name {
            SPIN => Box::new(move |count| round_trip::spinning::<Ours>(cpus, count)),
            _ => Box::new(move |count| round_trip::parking(cpus, count)),
        },
        baseline,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::CpuPair;
    use crate::ring::queue::Output;

    fn moves<L: Load, Q: Queue<L::Element>>(load: &L) -> Result<(), BenchError> {
        let cpus = CpuPair::choose(None)?;
        for mode in Mode::ALL {
            let sample = stream::run::<L, Q>(cpus, load, mode, 3_001)?;
            assert_eq!(sample.bytes, 3_001 * load.bytes());
        }
        Ok(())
    }

    fn moves_all<Q: Queue<u64> + Queue<[u64; 8]> + Queue<arrow::array::RecordBatch>>() {
        moves::<_, Q>(&Words).unwrap();
        moves::<_, Q>(&Lines).unwrap();
        moves::<_, Q>(&Batches::new()).unwrap();
        let cpus = CpuPair::choose(None).unwrap();
        assert!(round_trip::spinning::<Q>(cpus, 50).unwrap().value > 0.0);
    }

    #[test]
    fn every_channel_moves_every_load_in_order_and_answers() {
        moves_all::<Standard<false>>();
        moves_all::<Standard<true>>();
        moves_all::<Tokio>();
        #[cfg(feature = "crossbeam-channel")]
        {
            moves_all::<Crossbeam<false>>();
            moves_all::<Crossbeam<true>>();
        }
        #[cfg(feature = "flume")]
        {
            moves_all::<flume::Flume<false>>();
            moves_all::<flume::Flume<true>>();
        }
    }

    /// A queue that is wrong once, at the seventh element.
    struct Wrong<const HOW: u8>;

    struct WrongOut<const HOW: u8> {
        right: <Ours as Queue<u64>>::Output,
        taken: u64,
        held: Option<u64>,
    }

    const LOSES: u8 = 0;
    const DOUBLES: u8 = 1;
    const SWAPS: u8 = 2;

    impl<const HOW: u8> Queue<u64> for Wrong<HOW> {
        const NAME: &'static str = "wrong";
        type Input = <Ours as Queue<u64>>::Input;
        type Output = WrongOut<HOW>;

        fn open(capacity: usize) -> (Self::Input, Self::Output) {
            let (input, right) = <Ours as Queue<u64>>::open(capacity);
            let wrong = WrongOut {
                right,
                taken: 0,
                held: None,
            };
            (input, wrong)
        }
    }

    impl<const HOW: u8> Output<u64> for WrongOut<HOW> {
        fn take(&mut self) -> Option<u64> {
            if let Some(held) = self.held.take() {
                return Some(held);
            }
            let value = self.right.take()?;
            self.taken += 1;
            if self.taken != 7 {
                return Some(value);
            }
            match HOW {
                // In its place comes the next one, and at the end one that was never put, so that
                // nobody waits for it.
                LOSES => {
                    self.held = Some(u64::MAX);
                    Output::take(&mut self.right)
                }
                DOUBLES => {
                    self.held = Some(value);
                    Some(value)
                }
                _ => {
                    self.held = Some(value);
                    let mut next = None;
                    while next.is_none() {
                        next = Output::take(&mut self.right);
                    }
                    next
                }
            }
        }
    }

    fn is_found<const HOW: u8>() {
        let error = moves::<_, Wrong<HOW>>(&Words).unwrap_err();
        assert!(error.to_string().contains("out of order"), "{error}");
    }

    #[test]
    fn a_queue_that_loses_doubles_or_swaps_an_element_fails() {
        is_found::<LOSES>();
        is_found::<DOUBLES>();
        is_found::<SWAPS>();
    }
}
