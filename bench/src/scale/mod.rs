//! Throughput against the number of edges, and of exchanges of so many subtasks with so many.
//!
//! Subtasks that send take turns on one CPU, those that receive on the other, as on two workers.
//! The work is the same whatever the number of edges is: a case is compared with the same over
//! one edge, and what is lost is what the edges cost that have nothing, and that elements come
//! one by one instead of many together.

mod across;
mod within;
mod work;

use ringway::placement::CpuId;

use crate::contest::{Contest, Harness, Measure, Sample};
use crate::cpus::CpuPair;
use crate::edge::socket::{Kind, Load, Prebuilt, serve};
use crate::error::BenchError;
use crate::latency::Remote;
use crate::transport::Transport;

pub(crate) use across::{SEGMENT_BYTES, raise_descriptor_limit, small_segments};
pub(crate) use work::Subtasks;

/// Edges between two workers, over which one subtask sends batches in turn.
const EDGES: [usize; 4] = [1, 10, 100, 1_000];
/// The same where only the results are checked.
const SMOKE_EDGES: [usize; 2] = [1, 10];

/// Subtasks on either side of an exchange by key.
const SHUFFLES: [(usize, usize); 5] = [(1, 1), (2, 2), (4, 4), (8, 8), (1, 8)];

/// Rows of a batch: 4 KiB where it is passed on whole, and 16 KiB where it is split.
const ROWS: usize = 256;
const SHUFFLED_ROWS: usize = 1_024;

/// Batches of a run that is only checked; calibration begins with it. Each edge gets some.
const BATCHES_MIN: u64 = 4_000;
const SMOKE_BATCHES: u64 = 40;

/// Measures all cases of `scale` over a transport.
///
/// # Errors
/// When a row is lost, doubled or changed, or a party cannot be started or pinned.
pub(crate) fn measure(harness: &mut Harness, transport: Transport) -> Result<(), BenchError> {
    let edges: &[usize] = if harness.settings.smoke {
        &SMOKE_EDGES
    } else {
        &EDGES
    };
    for &edges in edges {
        let name = format!("scale/{}/edges/{edges}", transport.name());
        compare(harness, name, transport, Subtasks::in_turn(edges), ROWS)?;
    }
    for (senders, receivers) in SHUFFLES {
        let name = format!("scale/{}/shuffle/{senders}x{receivers}", transport.name());
        let subtasks = Subtasks::by_key(senders, receivers);
        compare(harness, name, transport, subtasks, SHUFFLED_ROWS)?;
    }
    Ok(())
}

fn compare(
    harness: &mut Harness,
    name: String,
    transport: Transport,
    subtasks: Subtasks,
    rows: usize,
) -> Result<(), BenchError> {
    if !harness.wants(&name) {
        return Ok(());
    }
    let cpus = harness.settings.cpus;
    let kind = Kind::Int64;
    let load = Load { kind, rows };
    let prebuilt = &load.prebuilt();
    let run = move |subtasks, count| run(cpus, transport, subtasks, load, prebuilt, count);
    harness.measure(Contest {
        name,
        unit: "bytes/s",
        measure: Measure::Rate,
        baseline_name: if subtasks.by_key { "1x1" } else { "one edge" },
        count: if harness.settings.smoke {
            SMOKE_BATCHES
        } else {
            BATCHES_MIN
        },
        ours: Box::new(move |count| run(subtasks, count)),
        baseline: Box::new(move |count| run(subtasks.one_edge(), count)),
    })
}

fn run(
    cpus: CpuPair,
    transport: Transport,
    subtasks: Subtasks,
    load: Load,
    prebuilt: &Prebuilt,
    count: u64,
) -> Result<Sample, BenchError> {
    match transport {
        Transport::Local => within::run(cpus, subtasks, load, prebuilt, count),
        Transport::Shared => across::run(cpus, Remote::Shared, subtasks, load, prebuilt, count),
        Transport::Socket => across::run(cpus, Remote::Socket, subtasks, load, prebuilt, count),
    }
}

/// In the other process: receives over so many edges.
///
/// # Errors
/// When it cannot be pinned, or what comes is not what is sent.
pub(crate) fn receive(remote: Remote, edges: usize, cpu: CpuId) -> Result<String, BenchError> {
    serve(cpu, |listener| across::receive(&listener, remote, edges))
}
