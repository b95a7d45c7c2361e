//! Over TCP between two processes of this host: record batches in a stream, and one-row batches
//! there and back.
//!
//! The edge and what is compared with it in `edge` and `latency` are those of there. Round trips
//! are a closed loop here, since most peers have no way to be asked for one batch and to answer
//! another meanwhile.

use std::fmt;
use std::net::TcpListener;
use std::str::FromStr;

use ringway::placement::CpuId;

use crate::contest::{Contest, Harness, Measure, Sample};
use crate::cpus::CpuPair;
use crate::edge::socket::flight::{self, Call};
use crate::edge::socket::{self, Carrier, Idle, Kind, Load, Peer, Tally, framed, serve};
use crate::error::BenchError;
use crate::latency::ours::{self, Edges, Remote};
use crate::latency::raw_tcp::{self, RawTcp};
use crate::latency::road::{Times, WARM_UP_TRIPS, one_by_one};
use crate::latency::{Answered, SMOKE_TRIPS, require_answers};
use crate::pinned::run_on;
use crate::spent::Spent;

/// Batches, or chunks of a raw stream, of a run that is only checked.
const SMOKE_BATCHES: u64 = 6;

/// Bytes of a raw frame: as many as that of a one-row batch has on the wire.
const FRAME_BYTES: usize = 264;

/// What is sent.
const LOADS: [Load; 4] = [
    Load {
        kind: Kind::Int64,
        rows: 1,
    },
    Load {
        kind: Kind::Int64,
        rows: 1024,
    },
    Load {
        kind: Kind::Int64,
        rows: 65_536,
    },
    Load {
        kind: Kind::String100,
        rows: 1024,
    },
];

const CARRIERS: &[Carrier] = &[
    Carrier::RawTcp,
    Carrier::PolledTcp,
    Carrier::Coalesced,
    Carrier::Framed,
    Carrier::Flight(Call::Put),
    Carrier::Flight(Call::Exchange),
    #[cfg(feature = "zeromq")]
    Carrier::ZeroMq,
];

/// What is looked at of all round trips.
const PERCENTILES: [(&str, f64); 2] = [("p50", 50.0), ("p99", 99.0)];

const ZEROMQ: &str = "zeromq";

/// Measures all cases of `peers/tcp`.
///
/// # Errors
/// When a row is lost, doubled, changed or out of order, or a process cannot be started or pinned.
pub(super) fn measure(harness: &mut Harness) -> Result<(), BenchError> {
    for load in LOADS {
        stream(harness, load)?;
    }
    for (idle, mode) in [(Idle::Spin, "spin"), (Idle::Adaptive, "adaptive")] {
        for (percentile, of_100) in PERCENTILES {
            let name = format!("peers/tcp/row/{mode}/{percentile}");
            round_trips(harness, &name, idle, of_100)?;
        }
    }
    Ok(())
}

fn leave_out_unbuilt(harness: &mut Harness, name: &str) {
    if cfg!(not(feature = "zeromq")) {
        let why = "it is not built in; it needs libzmq (Debian: apt-get install libzmq3-dev): build \
                   with --features zeromq to have it";
        harness.leave_out(name, ZEROMQ, why);
    }
}

fn stream(harness: &mut Harness, load: Load) -> Result<(), BenchError> {
    let name = format!("peers/tcp/{load}");
    if !harness.wants(&name) {
        return Ok(());
    }
    leave_out_unbuilt(harness, &name);
    let cpus = harness.settings.cpus;
    let prebuilt = &load.prebuilt();
    for &baseline in CARRIERS {
        harness.measure(Contest {
            name: name.clone(),
            unit: "bytes/s",
            measure: Measure::Rate,
            baseline_name: baseline.name(),
            count: SMOKE_BATCHES,
            ours: Box::new(move |count| socket::run(cpus, Carrier::Edge, prebuilt, count)),
            baseline: Box::new(move |count| socket::run(cpus, baseline, prebuilt, count)),
        })?;
    }
    Ok(())
}

/// What answers one-row batches, or frames of as many bytes as one has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answerer {
    /// Two edges.
    Edge(Idle),
    /// A TCP stream of frames, which are not looked at.
    Raw { polls: bool },
    /// tokio and a frame a batch.
    Framed,
    /// Arrow Flight's `DoExchange`.
    Flight,
    /// A pair of ZeroMQ's sockets.
    #[cfg(feature = "zeromq")]
    ZeroMq,
}

impl Answerer {
    const ALL: &[Self] = &[
        Self::Edge(Idle::Spin),
        Self::Edge(Idle::Adaptive),
        Self::Raw { polls: true },
        Self::Raw { polls: false },
        Self::Framed,
        Self::Flight,
        #[cfg(feature = "zeromq")]
        Self::ZeroMq,
    ];

    /// What ours is compared with where it waits like this.
    const fn baselines(idle: Idle) -> &'static [(&'static str, Self)] {
        match idle {
            Idle::Spin => &[("raw tcp polled", Self::Raw { polls: true })],
            _ => &[
                ("raw tcp", Self::Raw { polls: false }),
                ("tokio framed", Self::Framed),
                ("arrow-flight exchange", Self::Flight),
                #[cfg(feature = "zeromq")]
                (ZEROMQ, Self::ZeroMq),
            ],
        }
    }
}

impl fmt::Display for Answerer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Edge(Idle::Spin) => "edge-spin",
            Self::Edge(_) => "edge",
            Self::Raw { polls: true } => "raw-polled",
            Self::Raw { polls: false } => "raw",
            Self::Framed => "framed",
            Self::Flight => "flight",
            #[cfg(feature = "zeromq")]
            Self::ZeroMq => ZEROMQ,
        })
    }
}

impl FromStr for Answerer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.iter().copied();
        let found = all.find(|answerer| answerer.to_string() == text);
        found.ok_or_else(|| format!("nobody answers as {text:?}"))
    }
}

fn round_trips(
    harness: &mut Harness,
    name: &str,
    idle: Idle,
    percentile: f64,
) -> Result<(), BenchError> {
    if idle == Idle::Adaptive {
        leave_out_unbuilt(harness, name);
    }
    let cpus = harness.settings.cpus;
    for &(baseline_name, baseline) in Answerer::baselines(idle) {
        harness.measure(Contest {
            name: name.to_owned(),
            unit: "us",
            measure: Measure::Latency,
            baseline_name,
            count: SMOKE_TRIPS,
            ours: Box::new(move |count| trip(cpus, Answerer::Edge(idle), count, percentile)),
            baseline: Box::new(move |count| trip(cpus, baseline, count, percentile)),
        })?;
    }
    Ok(())
}

fn trip(
    cpus: CpuPair,
    answerer: Answerer,
    count: u64,
    percentile: f64,
) -> Result<Sample, BenchError> {
    let words = [
        "peer",
        "answer",
        &answerer.to_string(),
        &cpus.second.to_string(),
    ];
    let mut peer = Peer::start(&words.map(str::to_owned))?;
    let (to, count) = (peer.address, WARM_UP_TRIPS + count);
    let asked = ours::batches()?;
    let before = Spent::of_process();
    let times: Times = run_on(cpus.first, || match answerer {
        Answerer::Edge(idle) => {
            let mut edges = Edges::open(Remote::Socket, to, idle)?;
            let times = one_by_one(&mut edges, count)?;
            edges.finish()?;
            Ok(times)
        }
        Answerer::Raw { polls } => one_by_one(&mut RawTcp::open(to, polls, FRAME_BYTES)?, count),
        Answerer::Framed => framed::ask(to, &asked, count),
        Answerer::Flight => flight::ask(to, &asked, count),
        #[cfg(feature = "zeromq")]
        Answerer::ZeroMq => socket::zeromq::ask(to, &asked, count),
    })??;
    let spent = Spent::of_process() - before;
    let answered: Answered = peer.received()?;
    require_answers(answered.count, count)?;
    let value = times.latencies.percentile_us(percentile);
    let sample = Sample::latency(value, times.wall, spent + answered.spent);
    Ok(sample.with_latencies(times.latencies))
}

/// In the other process: answers.
///
/// # Errors
/// When it cannot be pinned, or what comes is not what is sent.
pub(crate) fn answer(answerer: Answerer, cpu: CpuId) -> Result<String, BenchError> {
    serve(cpu, |listener: TcpListener| {
        let count = match answerer {
            Answerer::Edge(idle) => ours::echo(Remote::Socket, &listener, idle),
            Answerer::Raw { polls } => raw_tcp::echo(&listener, polls, FRAME_BYTES),
            Answerer::Framed => framed::answer(listener),
            Answerer::Flight => {
                flight::receive(listener, true, Tally::of(None)).map(|came| came.total.rows)
            }
            #[cfg(feature = "zeromq")]
            Answerer::ZeroMq => socket::zeromq::answer(&listener),
        };
        count.map(Answered::now)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_process_is_told_what_to_do_in_one_word() {
        for answerer in Answerer::ALL {
            assert_eq!(answerer.to_string().parse(), Ok(*answerer));
        }
        assert!("pigeon".parse::<Answerer>().is_err());
    }
}
