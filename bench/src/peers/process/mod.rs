//! Within a process: queues from one thread to another that people would pick instead of ours.
//!
//! A channel comes in two forms. Polled, it waits as ours does, in user space for some 400 ns
//! between two looks; `blocking` is its own way to wait, as most of its users have it. None but
//! rtrb and tokio has a way to move many elements at once: in chunks they move them one by one.

mod channel;
mod channels;
mod tasks;
mod tokio_mpsc;

use crate::contest::Harness;
use crate::error::BenchError;
use crate::ring::load::{Batches, Lines, Load, Words};
use crate::ring::queue::{Mode, Queue, Wait};
use crate::ring::{
    Locked, LockedOnEdge, Rtrb, compare_round_trips, compare_streams, round_trip, stream,
};

use channel::{Blocking, Polled};
#[cfg(feature = "crossbeam-channel")]
use channels::Crossbeam;
#[cfg(feature = "flume")]
use channels::Flume;
use channels::Standard;
use tokio_mpsc::Tokio;

/// As the names of the cases begin.
const GROUP: &str = "peers/process";

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
    let all = &Mode::ALL;
    stream_of::<L, Rtrb>(harness, load, all)?;
    stream_of::<L, Polled<Standard>>(harness, load, all)?;
    stream_of::<L, Tokio>(harness, load, all)?;
    #[cfg(feature = "crossbeam-channel")]
    stream_of::<L, Polled<Crossbeam>>(harness, load, all)?;
    #[cfg(feature = "flume")]
    stream_of::<L, Polled<Flume>>(harness, load, all)?;

    // What sleeps is measured one by one: chunks of it would be the same.
    let single = &[Mode::Single];
    stream_of::<L, Locked>(harness, load, single)?;
    stream_of::<L, LockedOnEdge>(harness, load, single)?;
    stream_of::<L, Blocking<Standard>>(harness, load, single)?;
    #[cfg(feature = "crossbeam-channel")]
    stream_of::<L, Blocking<Crossbeam>>(harness, load, single)?;
    #[cfg(feature = "flume")]
    stream_of::<L, Blocking<Flume>>(harness, load, single)?;

    let cpus = harness.settings.cpus;
    for mode in Mode::ALL {
        leave_out_unbuilt(harness, &format!("{GROUP}/{}/{}", L::NAME, mode.name()));
        let tasks = Box::new(move |count| tasks::run(cpus, load, mode, count));
        compare_streams(harness, GROUP, load, mode, tasks::NAME, tasks)?;
    }
    Ok(())
}

fn stream_of<L: Load, Q: Queue<L::Element>>(
    harness: &mut Harness,
    load: &L,
    modes: &[Mode],
) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    for &mode in modes {
        let queue = Box::new(move |count| stream::run::<L, Q>(cpus, load, mode, count));
        compare_streams(harness, GROUP, load, mode, Q::NAME, queue)?;
    }
    Ok(())
}

fn round_trips(harness: &mut Harness) -> Result<(), BenchError> {
    for wait in [Wait::Spin, Wait::Park] {
        leave_out_unbuilt(harness, &wait.case_name(GROUP));
    }
    round_trip_of::<Rtrb>(harness, Wait::Spin)?;
    round_trip_of::<Polled<Standard>>(harness, Wait::Spin)?;
    round_trip_of::<Tokio>(harness, Wait::Spin)?;
    #[cfg(feature = "crossbeam-channel")]
    round_trip_of::<Polled<Crossbeam>>(harness, Wait::Spin)?;
    #[cfg(feature = "flume")]
    round_trip_of::<Polled<Flume>>(harness, Wait::Spin)?;

    round_trip_of::<Locked>(harness, Wait::Park)?;
    round_trip_of::<Blocking<Standard>>(harness, Wait::Park)?;
    #[cfg(feature = "crossbeam-channel")]
    round_trip_of::<Blocking<Crossbeam>>(harness, Wait::Park)?;
    #[cfg(feature = "flume")]
    round_trip_of::<Blocking<Flume>>(harness, Wait::Park)?;
    let cpus = harness.settings.cpus;
    let tasks = Box::new(move |count| tasks::round_trips(cpus, count));
    compare_round_trips(harness, GROUP, Wait::Park, tasks::NAME, tasks)
}

fn round_trip_of<Q: Queue<u64>>(harness: &mut Harness, wait: Wait) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    let queue = Box::new(move |count| round_trip::spinning::<Q>(cpus, count));
    compare_round_trips(harness, GROUP, wait, Q::NAME, queue)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::CpuPair;
    use crate::ring::Ours;
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
        moves_all::<Polled<Standard>>();
        moves_all::<Blocking<Standard>>();
        moves_all::<Tokio>();
        #[cfg(feature = "crossbeam-channel")]
        {
            moves_all::<Polled<Crossbeam>>();
            moves_all::<Blocking<Crossbeam>>();
        }
        #[cfg(feature = "flume")]
        {
            moves_all::<Polled<Flume>>();
            moves_all::<Blocking<Flume>>();
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
