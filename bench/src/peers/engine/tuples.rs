//! timely's exchange of tuples of an event time and a value.
//!
//! A worker sends its tuples in containers of the size that timely makes itself, and gives the
//! dataflow a step for as many as are in one of our batches. It has no bound on what is under
//! way. A tuple is copied into its container and again into the one that goes to its worker; our
//! batches are shared up to there.

use std::cell::RefCell;
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringway::partition::Key;
use ringway::placement::{CpuId, pin_current_thread};
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::communication::{Hooks, WorkerGuards};
use timely::dataflow::InputHandle;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Input;
use timely::dataflow::operators::generic::Operator;
use timely::execute::execute_from;
use timely::worker::Worker;
use timely::{Config, WorkerConfig};

use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::job::exchange::{Sums, rows};
use crate::spent::Spent;

use super::{Run, Share};

/// An event time and a value.
type Pair = (i64, i64);

/// Tuples of a container: 8 KiB of them, as timely makes them by default.
const CONTAINER_TUPLES: usize = 8192 / size_of::<Pair>();

/// The tuples of both workers, in batches of as many as ours have.
pub(super) struct Tuples([Arc<[Vec<Pair>]>; 2]);

impl Tuples {
    pub(super) fn new(smoke: bool) -> Self {
        let swapped = |(value, time): (i64, i64)| (time, value);
        Self(rows(smoke).map(|batches| {
            let batches = batches.into_iter();
            batches
                .map(|rows| rows.into_iter().map(swapped).collect())
                .collect()
        }))
    }
}

/// What one worker did.
struct Done {
    sums: Sums,
    began: Instant,
    ended: Instant,
}

/// Two workers of this process.
///
/// # Errors
/// When a worker cannot be pinned or panics.
pub(super) fn in_one_process(
    cpus: CpuPair,
    tuples: &Tuples,
    count: u64,
) -> Result<Run, BenchError> {
    let tuples = tuples.0.clone();
    let before = Spent::of_process();
    let workers = timely::execute(Config::process(2), move |worker| {
        let cpu = [cpus.first, cpus.second][worker.index()];
        exchange(worker, cpu, &tuples[worker.index()], count)
    });
    finished(workers, before)
}

/// One worker of this process, and one of that at the other side of `stream`. The threads that
/// timely has for a connection run where this thread does.
///
/// # Errors
/// As for [`in_one_process`].
pub(super) fn in_two_processes(
    share: &Share,
    process: usize,
    stream: TcpStream,
) -> Result<Run, BenchError> {
    let tuples = Tuples::new(share.smoke).0;
    stream.set_nodelay(true)?;
    let mut streams = [Some(stream), None];
    streams.rotate_right(1 - process);
    let hooks = Hooks::default();
    let here = ProcessBuilder::new_typed_vector(1, hooks.refill.clone(), hooks.spill.clone());
    let (builders, guard) =
        initialize_networking_from_sockets(here, streams.into(), process, 1, hooks)?;
    let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
    let (cpu, count) = (share.cpu, share.count);
    let before = Spent::of_process();
    let workers = execute_from(
        builders,
        Box::new(guard),
        WorkerConfig::default(),
        move |worker| exchange(worker, cpu, &tuples[worker.index()], count),
    );
    finished(workers, before)
}

fn exchange(
    worker: &mut Worker,
    cpu: CpuId,
    batches: &[Vec<Pair>],
    count: u64,
) -> Result<Done, String> {
    pin_current_thread(cpu).map_err(|error| error.to_string())?;
    let sums = Rc::new(RefCell::new(Sums::none()));
    let added = Rc::clone(&sums);
    let mut input = InputHandle::<u64, _>::new();
    worker.dataflow(|scope| {
        let by_value = Exchange::new(|(_, value): &Pair| value.key_hash());
        let stream = scope.input_from(&mut input).container::<Vec<Pair>>();
        stream.sink(by_value, "sums", move |(input, _)| {
            let mut sums = added.borrow_mut();
            input.for_each(|_, pairs| {
                for (time, value) in pairs.drain(..) {
                    sums.add(value, time);
                }
            });
        });
    });
    let began = Instant::now();
    let mut container = Vec::with_capacity(CONTAINER_TUPLES);
    for batch in (0..count).flat_map(|_| batches) {
        for pairs in batch.chunks(CONTAINER_TUPLES) {
            container.extend_from_slice(pairs);
            input.send_batch(&mut container);
            container.clear();
        }
        worker.step();
    }
    input.close();
    while worker.has_dataflows() {
        worker.step_or_park(None);
    }
    let ended = Instant::now();
    let sums = sums.borrow().clone();
    Ok(Done { sums, began, ended })
}

fn finished(
    workers: Result<WorkerGuards<Result<Done, String>>, String>,
    before: Spent,
) -> Result<Run, BenchError> {
    let workers = workers.map_err(BenchError::new)?;
    let done = workers.join().into_iter();
    let done = done.map(|done| done.and_then(|done| done));
    let done: Vec<Done> = done
        .collect::<Result<_, String>>()
        .map_err(BenchError::new)?;
    let spent = Spent::of_process() - before;
    let began = done.iter().map(|done| done.began).min();
    let ended = done.iter().map(|done| done.ended).max();
    let mut sums = Sums::none();
    done.iter().for_each(|done| sums.add_all(&done.sums));
    let wall = began
        .zip(ended)
        .map_or(Duration::ZERO, |(began, ended)| ended - began);
    Ok(Run { sums, wall, spent })
}
