//! Edges over TCP between two pinned processes, beside what else could move the batches.
//!
//! The batches are made beforehand. The receiver is a process of its own, on the second CPU; it
//! reads every value, and what it has seen is checked in every run. Bytes are those of Arrow's
//! buffers, and CPU time is that of both processes from the first byte on.

mod coalesced;
pub(crate) mod flight;
pub(crate) mod framed;
mod load;
mod ours;
mod peer;
mod raw_tcp;
mod tally;
#[cfg(feature = "zeromq")]
pub(crate) mod zeromq;

use std::net::TcpListener;
use std::str::FromStr;
use std::time::Duration;

use ringway::edge::remote::RemoteOptions;
use ringway::placement::CpuId;

use crate::contest::{Contest, Harness, Measure, Sample};
use crate::cpus::CpuPair;
use crate::error::BenchError;
use crate::pinned::run_on;

use flight::Call;

pub(super) use load::PREBUILT_BYTES;
pub(crate) use load::{Kind, Load, Prebuilt, Total, sum_of_words};
pub(crate) use ours::{Idle, OwnLinks};
pub(crate) use peer::{Meter, Peer, Received, serve};
pub(crate) use tally::Tally;

/// Rows of a batch.
pub(crate) const ROWS: [usize; 5] = [1, 256, 1024, 8192, 65536];

/// Rows of a batch in version 1.
const V1_ROWS: usize = 1024;

/// Batches, or chunks of a raw stream, of a run that is only checked; calibration begins with it.
const SMOKE_BATCHES: u64 = 6;

/// What carries the batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// The edge, in the negotiated form of the wire.
    Edge,
    /// The edge in version 1 of the wire.
    EdgeV1,
    /// A TCP stream of which nothing is made.
    RawTcp,
    /// The same, whose ends never sleep.
    PolledTcp,
    /// tokio and Arrow's stream format.
    Coalesced,
    /// tokio and a frame a batch.
    Framed,
    /// Arrow Flight.
    Flight(Call),
    /// ZeroMQ.
    #[cfg(feature = "zeromq")]
    ZeroMq,
}

impl Carrier {
    pub(crate) const BASELINES: [Self; 3] =
        [Self::RawTcp, Self::Coalesced, Self::Flight(Call::Put)];

    const ALL: &[Self] = &[
        Self::Edge,
        Self::EdgeV1,
        Self::RawTcp,
        Self::PolledTcp,
        Self::Coalesced,
        Self::Framed,
        Self::Flight(Call::Put),
        Self::Flight(Call::Exchange),
        #[cfg(feature = "zeromq")]
        Self::ZeroMq,
    ];

    /// As the cases have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Edge => "edge/socket",
            Self::EdgeV1 => "edge/socket-v1",
            Self::RawTcp => "raw tcp",
            Self::PolledTcp => "raw tcp polled",
            Self::Coalesced => "tokio coalesced",
            Self::Framed => "tokio framed",
            Self::Flight(Call::Put) => "arrow-flight",
            Self::Flight(Call::Exchange) => "arrow-flight exchange",
            #[cfg(feature = "zeromq")]
            Self::ZeroMq => "zeromq",
        }
    }

    /// As a word of the command line.
    const fn word(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::EdgeV1 => "edge-v1",
            Self::RawTcp => "raw-tcp",
            Self::PolledTcp => "polled-tcp",
            Self::Coalesced => "coalesced",
            Self::Framed => "framed",
            Self::Flight(Call::Put) => "flight",
            Self::Flight(Call::Exchange) => "flight-exchange",
            #[cfg(feature = "zeromq")]
            Self::ZeroMq => "zeromq",
        }
    }
}

impl FromStr for Carrier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.iter().copied();
        let found = all.find(|carrier| carrier.word() == text);
        found.ok_or_else(|| format!("there is no carrier {text:?}"))
    }
}

/// Measures all cases of `edge --transport socket`.
///
/// # Errors
/// When a row is lost, doubled or changed, or a process cannot be started or pinned.
pub(crate) fn measure(harness: &mut Harness) -> Result<(), BenchError> {
    for kind in [Kind::Int64, Kind::String100] {
        for rows in ROWS {
            compare(harness, Carrier::Edge, Load { kind, rows })?;
        }
    }
    let (kind, rows) = (Kind::Int64, V1_ROWS);
    compare(harness, Carrier::EdgeV1, Load { kind, rows })
}

fn compare(harness: &mut Harness, ours: Carrier, load: Load) -> Result<(), BenchError> {
    let name = format!("{}/{load}", ours.name());
    if !harness.wants(&name) {
        return Ok(());
    }
    let cpus = harness.settings.cpus;
    let prebuilt = &load.prebuilt();
    for baseline in Carrier::BASELINES {
        harness.measure(Contest {
            name: name.clone(),
            unit: "bytes/s",
            measure: Measure::Rate,
            baseline_name: baseline.name(),
            count: SMOKE_BATCHES,
            ours: Box::new(move |count| run(cpus, ours, prebuilt, count)),
            baseline: Box::new(move |count| run(cpus, baseline, prebuilt, count)),
        })?;
    }
    Ok(())
}

/// Sends `count` batches, or as many chunks of a raw stream, and checks what came.
///
/// # Errors
/// When a row is lost, doubled or changed, or a process cannot be started or pinned.
pub(crate) fn run(
    cpus: CpuPair,
    carrier: Carrier,
    prebuilt: &Prebuilt,
    count: u64,
) -> Result<Sample, BenchError> {
    let words = ["receive", carrier.word(), &cpus.second.to_string()];
    let tallied = prebuilt.tallied().map(|distinct| distinct.to_string());
    let words = words.map(str::to_owned).into_iter().chain(tallied);
    let mut peer = Peer::start(&words.collect::<Vec<_>>())?;
    let (to, raw) = (peer.address, raw_tcp::chunks());
    let meter = run_on(cpus.first, || match carrier {
        Carrier::Edge => ours::send(to, RemoteOptions::default(), prebuilt, count),
        Carrier::EdgeV1 => ours::send(to, RemoteOptions::version_1(), prebuilt, count),
        Carrier::RawTcp => raw_tcp::send(to, false, &raw, count),
        Carrier::PolledTcp => raw_tcp::send(to, true, &raw, count),
        Carrier::Coalesced => coalesced::send(to, prebuilt, count),
        Carrier::Framed => framed::send(to, prebuilt, count),
        Carrier::Flight(call) => flight::send(to, call, prebuilt, count),
        #[cfg(feature = "zeromq")]
        Carrier::ZeroMq => zeromq::send(to, prebuilt, count),
    })??;
    let received: Received = peer.received()?;
    let spent = meter.spent() + received.spent;
    let wall = Duration::try_from_secs_f64(received.ended_s - meter.began_s)?;
    let (expected, bytes) = match carrier {
        Carrier::RawTcp | Carrier::PolledTcp => (
            raw_tcp::total(&raw, count),
            count * raw_tcp::CHUNK_BYTES as u64,
        ),
        _ => (prebuilt.total(count), prebuilt.bytes(count)),
    };
    received.total.require(expected)?;
    Ok(Sample::rate(bytes, wall, spent, bytes).copying(received.copied_with(meter)))
}

/// In the receiving process: what came over `carrier`.
///
/// # Errors
/// When it cannot be pinned, or what comes is not what is sent.
pub(crate) fn receive(
    carrier: Carrier,
    cpu: CpuId,
    tallied: Option<u64>,
) -> Result<String, BenchError> {
    let tally = Tally::of(tallied);
    serve(cpu, |listener: TcpListener| match carrier {
        Carrier::Edge => ours::receive(&listener, RemoteOptions::default(), tally),
        Carrier::EdgeV1 => ours::receive(&listener, RemoteOptions::version_1(), tally),
        Carrier::RawTcp => raw_tcp::receive(&listener, false),
        Carrier::PolledTcp => raw_tcp::receive(&listener, true),
        Carrier::Coalesced => coalesced::receive(listener, tally),
        Carrier::Framed => framed::receive(listener, tally),
        Carrier::Flight(_) => flight::receive(listener, false, tally),
        #[cfg(feature = "zeromq")]
        Carrier::ZeroMq => zeromq::receive(&listener, tally),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_carrier_is_a_word_of_the_command_line() {
        for carrier in Carrier::ALL {
            assert_eq!(carrier.word().parse(), Ok(*carrier));
        }
        assert!("pigeon".parse::<Carrier>().is_err());
    }
}
