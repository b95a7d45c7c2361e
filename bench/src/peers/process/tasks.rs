//! The bounded channel of tokio between two tasks, each on a runtime and a thread of its own: as
//! its users have it. A task that calls into the channel from outside of a runtime, by
//! `blocking_send` and `blocking_recv`, enters one for every element, and is slower.

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::contest::Sample;
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::pinned::run_pair;
use crate::ring::CAPACITY_ELEMENTS;
use crate::ring::load::{Load, Taker};
use crate::ring::queue::{Mode, chunk_of};
use crate::ring::round_trip::there_and_back;
use crate::ring::stream::in_rounds;

/// As the cases have it.
pub(super) const NAME: &str = "tokio mpsc tasks";

/// Moves `count` elements. It has no way to send many at once, but one to receive them.
///
/// # Errors
/// When an element is lost, doubled or out of order, or a thread cannot be pinned.
pub(super) fn run<L: Load>(
    cpus: CpuPair,
    load: &L,
    mode: Mode,
    count: u64,
) -> Result<Sample, BenchError> {
    in_rounds(load, count, |taker, round| {
        let (input, output) = channel(CAPACITY_ELEMENTS);
        let (sending, receiving) = (runtime()?, runtime()?);
        let values = load.make(round);
        run_pair(
            cpus,
            || sending.block_on(send_all(input, values)),
            || receiving.block_on(receive_all(output, taker, mode, round)),
        )
    })
}

async fn send_all<T>(input: Sender<T>, values: impl Iterator<Item = T>) {
    for value in values {
        // It fails when the other task has ended, which says itself why.
        if input.send(value).await.is_err() {
            return;
        }
    }
}

async fn receive_all<T>(
    mut output: Receiver<T>,
    taker: &mut impl Taker<T>,
    mode: Mode,
    count: u64,
) {
    match mode {
        Mode::Single => {
            while let Some(value) = output.recv().await {
                taker.take(value);
            }
        }
        Mode::Chunk => {
            let mut values = Vec::new();
            while output.recv_many(&mut values, chunk_of(count)).await > 0 {
                values.drain(..).for_each(|value| taker.take(value));
            }
        }
    }
}

/// The median round trip over two channels, in nanoseconds. A runtime is entered for every element,
/// which takes little beside a sleep and a wake-up.
///
/// # Errors
/// As for [`run`].
pub(super) fn round_trips(cpus: CpuPair, count: u64) -> Result<Sample, BenchError> {
    let (out, mut arriving) = channel(CAPACITY_ELEMENTS);
    let (answer, mut back) = channel(CAPACITY_ELEMENTS);
    let (asking, answering) = (runtime()?, runtime()?);
    there_and_back(
        cpus,
        count,
        |number| {
            asking.block_on(async {
                // What can't be sent is not answered either.
                let _ = out.send(number).await;
                back.recv().await.unwrap_or(u64::MAX)
            })
        },
        || {
            answering.block_on(async {
                if let Some(number) = arriving.recv().await {
                    let _ = answer.send(number).await;
                }
            });
        },
    )
}

fn runtime() -> Result<Runtime, BenchError> {
    Ok(Builder::new_current_thread().build()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::load::{Batches, Lines, Words};

    fn moves<L: Load>(load: &L) {
        let cpus = CpuPair::choose(None).unwrap();
        for mode in Mode::ALL {
            let sample = run(cpus, load, mode, 3_001).unwrap();
            assert_eq!(sample.bytes, 3_001 * load.bytes());
        }
    }

    #[test]
    fn tasks_move_every_load_in_order_and_answer() {
        moves(&Words);
        moves(&Lines);
        moves(&Batches::new());
        let cpus = CpuPair::choose(None).unwrap();
        assert!(round_trips(cpus, 50).unwrap().value > 0.0);
    }
}
