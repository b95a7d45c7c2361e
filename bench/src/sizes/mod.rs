//! Throughput against the bytes of a row, over each transport.
//!
//! Rows of a batch are fixed, and each has a time and so many bytes. What grows with the bytes
//! is what is copied; what does not is what each batch costs whatever is in it.

use crate::contest::{Contest, Harness};
use crate::edge::compare_load;
use crate::edge::shared::{self, Payloads};
use crate::edge::socket::{self, Carrier, Kind, Load};
use crate::error::BenchError;
use crate::transport::Transport;

/// Bytes of the value of a row, beside which it has a time.
const VALUE_BYTES: [usize; 6] = [8, 16, 64, 256, 1 << 10, 16 << 10];

/// Rows of a batch.
const ROWS: usize = 1024;

/// Batches, or messages of as many bytes, of a run that is only checked.
const SMOKE_BATCHES: u64 = 6;

/// Measures all cases of `sizes` over a transport.
///
/// # Errors
/// When a row is lost, doubled or changed, or a process cannot be started or pinned.
pub(crate) fn measure(harness: &mut Harness, transport: Transport) -> Result<(), BenchError> {
    for bytes in VALUE_BYTES {
        let name = format!("sizes/{}/bytes/{bytes}", transport.name());
        let kind = Kind::Bytes(bytes);
        let load = Load { kind, rows: ROWS };
        if !harness.wants(&name) {
            continue;
        }
        match transport {
            Transport::Local => compare_load(harness, &name, load)?,
            Transport::Shared => beside_a_bare_ring(harness, name, load)?,
            Transport::Socket => beside_raw_tcp(harness, name, load)?,
        }
    }
    Ok(())
}

fn beside_a_bare_ring(harness: &mut Harness, name: String, load: Load) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    let (prebuilt, payloads) = (&load.prebuilt(), &Payloads::of(load.bytes()));
    let ours = |count| shared::edge(cpus, prebuilt, count);
    let ring = shared::BareRing::new(cpus, load.bytes(), payloads);
    let ring = |count| ring.run(count);
    harness.measure(Contest::of_bytes(
        name,
        "memfd ring",
        SMOKE_BATCHES,
        ours,
        ring,
    ))
}

fn beside_raw_tcp(harness: &mut Harness, name: String, load: Load) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    let prebuilt = &load.prebuilt();
    let ours = |count| socket::run(cpus, Carrier::Edge, prebuilt, count);
    let raw = |count| socket::run(cpus, Carrier::RawTcp, prebuilt, count);
    harness.measure(Contest::of_bytes(name, "raw tcp", SMOKE_BATCHES, ours, raw))
}
