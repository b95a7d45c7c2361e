//! Rings: ours beside rtrb and beside a queue behind a lock.
//!
//! All hold 1024 elements. Ours runs as it does in a job, with waking on: every push and pop
//! looks whether the other side sleeps.

pub(crate) mod load;
mod locked;
mod ours;
pub(crate) mod queue;
pub(crate) mod round_trip;
mod rtrb_queue;
pub(crate) mod stream;

use crate::contest::{Contender, Contest, Harness, Measure};
use crate::error::BenchError;

use load::{Batches, Lines, Load, Words};
use queue::{Mode, Queue, Wait};

pub(crate) use locked::{Locked, LockedOnEdge};
pub(crate) use ours::Ours;
pub(crate) use rtrb_queue::Rtrb;

/// Elements that every queue holds at most.
pub(crate) const CAPACITY_ELEMENTS: usize = 1024;

/// Elements of a chunk.
pub(crate) const CHUNK_ELEMENTS: usize = 64;

/// Elements of a run that is only checked.
const SMOKE_ELEMENTS: u64 = 20_000;

/// Round trips of a run that is only checked.
const SMOKE_ROUND_TRIPS: u64 = 200;

/// Measures all cases of `ring`.
///
/// # Errors
/// When an element is lost, doubled or out of order, or a thread cannot be pinned.
pub(crate) fn measure(harness: &mut Harness) -> Result<(), BenchError> {
    measure_load(harness, &Words)?;
    measure_load(harness, &Lines)?;
    measure_load(harness, &Batches::new())?;
    measure_round_trips(harness)
}

/// Our ring beside another way to move elements from one thread to another.
///
/// # Errors
/// As for [`measure`].
pub(crate) fn compare_streams<L: Load>(
    harness: &mut Harness,
    group: &str,
    load: &L,
    mode: Mode,
    baseline_name: &'static str,
    baseline: Contender<'_>,
) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    harness.measure(Contest {
        name: format!("{group}/{}/{}", L::NAME, mode.name()),
        unit: "elements/s",
        measure: Measure::Rate,
        baseline_name,
        count: SMOKE_ELEMENTS,
        ours: Box::new(move |count| stream::run::<L, Ours>(cpus, load, mode, count)),
        baseline,
    })
}

/// Two of our rings, which `wait` like this, beside another way there and back.
///
/// # Errors
/// As for [`measure`].
pub(crate) fn compare_round_trips(
    harness: &mut Harness,
    group: &str,
    wait: Wait,
    baseline_name: &'static str,
    baseline: Contender<'_>,
) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    harness.measure(Contest {
        name: wait.case_name(group),
        unit: "ns",
        measure: Measure::Latency,
        baseline_name,
        count: SMOKE_ROUND_TRIPS,
        ours: match wait {
            Wait::Spin => Box::new(move |count| round_trip::spinning::<Ours>(cpus, count)),
            Wait::Park => Box::new(move |count| round_trip::parking(cpus, count)),
        },
        baseline,
    })
}

fn measure_load<L: Load>(harness: &mut Harness, load: &L) -> Result<(), BenchError> {
    for mode in Mode::ALL {
        compare::<L, Rtrb>(harness, load, mode)?;
        compare::<L, Locked>(harness, load, mode)?;
        compare::<L, LockedOnEdge>(harness, load, mode)?;
    }
    Ok(())
}

fn compare<L: Load, Q: Queue<L::Element>>(
    harness: &mut Harness,
    load: &L,
    mode: Mode,
) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    let queue = Box::new(move |count| stream::run::<L, Q>(cpus, load, mode, count));
    compare_streams(harness, "ring", load, mode, Q::NAME, queue)
}

fn measure_round_trips(harness: &mut Harness) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    let rtrb = Box::new(move |count| round_trip::spinning::<Rtrb>(cpus, count));
    let name = <Rtrb as Queue<u64>>::NAME;
    compare_round_trips(harness, "ring", Wait::Spin, name, rtrb)?;
    let futex = Box::new(move |count| round_trip::futex(cpus, count));
    compare_round_trips(harness, "ring", Wait::Park, "futex", futex)
}
