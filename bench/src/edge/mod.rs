//! Edges: the whole edge with its elements beside the bare ring under it.
//!
//! Both move the same prebuilt elements, cloned where they are pushed and dropped where they
//! are popped, and wake the other side once for 16 elements, as a task does at the end of a
//! step.

mod batches;
pub(crate) mod elements;
pub(crate) mod local;
pub(crate) mod shared;
pub(crate) mod socket;

use crate::contest::{Contest, Harness, Measure, Sample};
use crate::error::BenchError;

pub(crate) use shared::RAW_BYTES;

use elements::{Elements, of_load, one_row_batches, record_batches};
use socket::{Kind, Load, ROWS};

/// Elements that an edge holds at most.
const CAPACITY_ELEMENTS: usize = 1024;

/// Elements that are pushed between two looks whether the other side sleeps.
const FLUSH_ELEMENTS: u64 = 16;

/// Elements of a run that is only checked.
const SMOKE_ELEMENTS: u64 = 5_000;

/// Measures all cases of `edge --transport local`.
///
/// # Errors
/// When an element is lost, doubled or out of order, or a thread cannot be pinned.
pub(crate) fn measure_local(harness: &mut Harness) -> Result<(), BenchError> {
    compare(harness, "edge/local/row", &one_row_batches())?;
    compare(harness, "edge/local/batch1024", &record_batches())?;
    for kind in [Kind::Int64, Kind::String100] {
        for rows in ROWS {
            let load = Load { kind, rows };
            compare_load(harness, &format!("edge/local/{load}"), load)?;
        }
    }
    Ok(())
}

/// Measures the local edge beside the bare ring with the batches of a load, in bytes a second.
///
/// # Errors
/// As for [`measure_local`].
pub(crate) fn compare_load(
    harness: &mut Harness,
    name: &str,
    load: Load,
) -> Result<(), BenchError> {
    if !harness.wants(name) {
        return Ok(());
    }
    let cpus = harness.settings.cpus;
    let elements = &of_load(load);
    let in_bytes = |sample: Sample| Sample {
        value: sample.value * load.bytes() as f64,
        ..sample
    };
    harness.measure(Contest {
        name: name.to_owned(),
        unit: "bytes/s",
        measure: Measure::Rate,
        baseline_name: "bare ring",
        count: SMOKE_ELEMENTS,
        ours: Box::new(|count| local::edge(cpus, elements, count).map(in_bytes)),
        baseline: Box::new(|count| local::bare_ring(cpus, elements, count).map(in_bytes)),
    })
}

fn compare<B: ringway::batch::Payload + Sync>(
    harness: &mut Harness,
    name: &str,
    elements: &Elements<B>,
) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    harness.measure(Contest {
        name: name.to_owned(),
        unit: "elements/s",
        measure: Measure::Rate,
        baseline_name: "bare ring",
        count: SMOKE_ELEMENTS,
        ours: Box::new(|count| local::edge(cpus, elements, count)),
        baseline: Box::new(|count| local::bare_ring(cpus, elements, count)),
    })
}
