//! The memory that an edge takes while nothing is on it, beside its slots.

use ringway::batch::Rows;
use ringway::edge::{EdgeOptions, Receiver, Sender, local};
use ringway_shm::Bell;

use crate::case::Case;
use crate::contest::Settings;
use crate::error::BenchError;

/// The name of the case.
pub(crate) const NAME: &str = "idle/edges";

/// Edges that are opened at each of two capacities.
const EDGES: usize = 5_000;
const SMOKE_EDGES: usize = 200;

/// Bytes that an edge may take beside its slots.
const LIMIT_BYTES: f64 = 2_048.0;

/// Two capacities that are far apart, and both small enough that the allocator serves them
/// from its heap, where memory is not rounded up to pages.
const CAPACITIES: [usize; 2] = [1, 257];

type Edge = (Sender<Rows<i64>>, Receiver<Rows<i64>>);

/// Bytes of an edge beside its slots: what edges of two capacities take, drawn on to a
/// capacity that leaves no slot.
///
/// # Errors
/// When the kernel does not say how much memory the process has.
pub(crate) fn measure(settings: Settings) -> Result<Case, BenchError> {
    let edges = if settings.smoke { SMOKE_EDGES } else { EDGES };
    let mut kept = Vec::with_capacity(CAPACITIES.len() * edges);
    let [fewer, more] = CAPACITIES.map(|capacity| {
        let before = data_bytes()?;
        kept.extend((0..edges).map(|_| open(capacity)));
        let after = data_bytes()?;
        Ok::<f64, BenchError>((after - before) / edges as f64)
    });
    let (fewer, more) = (fewer?, more?);
    let slot_bytes = (more - fewer) / (CAPACITIES[1] - CAPACITIES[0]) as f64;
    // Every edge also has slots for the control elements that may wait where data has no room.
    let slots = CAPACITIES[0] + ringway::limits::CONTROL_ELEMENTS_MAX;
    let beside_slots = fewer - slots as f64 * slot_bytes;
    let idle = kept.iter().all(|(sender, _)| sender.is_empty());
    if !idle || kept.len() != CAPACITIES.len() * edges {
        return Err(BenchError::new("an edge that nobody used is not empty"));
    }
    let unit = "bytes beside slots";
    let mut case = Case::against_limit(NAME, unit, &[beside_slots], LIMIT_BYTES);
    case.noisy = settings
        .smoke
        .then(|| "smoke size: memory comes in larger pieces than these edges take".to_owned());
    Ok(case)
}

fn open(capacity: usize) -> Edge {
    // A worker's bell is shared by all its edges, so it is no part of one.
    thread_local! {
        static BELLS: (Bell, Bell) = (Bell::thread(), Bell::thread());
    }
    let options = EdgeOptions::named("idle[0] -> idle[0]").capacity(capacity);
    BELLS.with(|(sender, receiver)| local::open(options, sender.clone(), receiver.clone()))
}

/// Bytes of writable memory that the process has asked for, touched or not.
fn data_bytes() -> Result<f64, BenchError> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib = status.lines().find_map(|line| {
        let value = line.strip_prefix("VmData:")?.trim().strip_suffix("kB")?;
        value.trim().parse::<f64>().ok()
    });
    let kib = kib.ok_or_else(|| BenchError::new("/proc/self/status has no VmData"))?;
    Ok(kib * 1024.0)
}
