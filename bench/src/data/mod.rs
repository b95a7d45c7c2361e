//! Throughput with data as it is, over each transport: auctions, orders, flights, and columns of
//! many types. Rows, and the checksum over all columns, are checked in every run.

mod lineitem;
mod made;
mod sets;

use arrow::array::RecordBatch;
use ringway::element::StreamElement;

use crate::contest::{Contest, Harness, Sample};
use crate::cpus::CpuPair;
use crate::edge::elements::Take;
use crate::edge::local::{COPIED_BYTES, over_edge, over_ring};
use crate::edge::shared::{self, Payloads};
use crate::edge::socket::{self, Carrier, Prebuilt, Tally, Total};
use crate::error::BenchError;
use crate::pinned::Pair;
use crate::transport::Transport;

pub(crate) use sets::Sets;

use sets::Set;

/// Batches of a run that is only checked, more than two rounds; calibration begins with it.
const SMOKE_BATCHES: u64 = 9;

/// Measures all cases of `data` over a transport.
///
/// # Errors
/// When a row is lost, doubled or changed, a file can't be read, or a party cannot be started or
/// pinned.
pub(crate) fn measure(
    harness: &mut Harness,
    transport: Transport,
    sets: &Sets<'_>,
) -> Result<(), BenchError> {
    for set in Set::ALL {
        let name = format!("data/{}/{}", transport.name(), set.name());
        if !harness.wants(&name) {
            continue;
        }
        let prebuilt = &Prebuilt::hashed(sets.batches(set)?)?;
        match transport {
            Transport::Local => locally(harness, &name, prebuilt)?,
            Transport::Shared => through_memory(harness, &name, prebuilt)?,
            Transport::Socket => over_sockets(harness, &name, prebuilt)?,
        }
    }
    Ok(())
}

fn locally(harness: &mut Harness, name: &str, prebuilt: &Prebuilt) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    let elements = |count| prebuilt.batches(count).map(StreamElement::Data);
    let sample = |pair: Pair<(), ()>, count| {
        let bytes = prebuilt.bytes(count);
        Sample::rate(bytes, pair.wall, pair.spent, bytes)
    };
    let edge = |count| {
        let pair = over_edge(cpus, elements(count), Taker::of(prebuilt, count))?;
        Ok(sample(pair, count).copying(COPIED_BYTES))
    };
    let ring = |count| {
        let pair = over_ring(cpus, elements(count), Taker::of(prebuilt, count))?;
        Ok(sample(pair, count))
    };
    rates(harness, name, "bare ring", &edge, &ring)
}

fn through_memory(
    harness: &mut Harness,
    name: &str,
    prebuilt: &Prebuilt,
) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    // Messages of one size, as many bytes as the batches have on average.
    let distinct = prebuilt.distinct();
    let message_bytes = (prebuilt.bytes(distinct) / distinct) as usize;
    let payloads = Payloads::of(message_bytes);
    let edge = |count| shared::edge(cpus, prebuilt, count);
    let ring = shared::BareRing::new(cpus, message_bytes, &payloads);
    let ring = |count| ring.run(count);
    let socket = |count| socket::run(cpus, Carrier::Edge, prebuilt, count);
    rates(harness, name, "memfd ring", &edge, &ring)?;
    rates(harness, name, "socket", &edge, &socket)
}

fn over_sockets(harness: &mut Harness, name: &str, prebuilt: &Prebuilt) -> Result<(), BenchError> {
    let cpus: CpuPair = harness.settings.cpus;
    let edge = |count| socket::run(cpus, Carrier::Edge, prebuilt, count);
    for baseline in Carrier::BASELINES {
        let baseline_run = |count| socket::run(cpus, baseline, prebuilt, count);
        rates(harness, name, baseline.name(), &edge, &baseline_run)?;
    }
    Ok(())
}

fn rates(
    harness: &mut Harness,
    name: &str,
    baseline_name: &'static str,
    ours: &dyn Fn(u64) -> Result<Sample, BenchError>,
    baseline: &dyn Fn(u64) -> Result<Sample, BenchError>,
) -> Result<(), BenchError> {
    let name = name.to_owned();
    harness.measure(Contest::of_bytes(
        name,
        baseline_name,
        SMOKE_BATCHES,
        ours,
        baseline,
    ))
}

/// Takes batches over a local edge, as the receiver of a remote one does.
struct Taker {
    tally: Tally,
    expected: Total,
    is_other: bool,
}

impl Taker {
    fn of(prebuilt: &Prebuilt, count: u64) -> Self {
        Self {
            tally: Tally::of(prebuilt.tallied()),
            expected: prebuilt.total(count),
            is_other: false,
        }
    }
}

impl Take<RecordBatch> for Taker {
    fn take(&mut self, element: StreamElement<RecordBatch>) {
        match element {
            StreamElement::Data(batch) => self.tally.add(&batch),
            _ => self.is_other = true,
        }
    }

    fn finish(self) -> Result<(), BenchError> {
        if self.is_other {
            return Err(BenchError::new(
                "batches were sent, and something else came",
            ));
        }
        self.tally.total().require(self.expected)
    }
}
