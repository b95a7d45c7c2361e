//! Batches both ways at the same time: each of two processes sends its own as they are due, and
//! records how late those of the other come. What is looked at are the times of both together.
//!
//! The two have one clock, and agree on when the first batch is due: the due time of whatever
//! comes is known without being sent along.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::time::{Duration, Instant};

use ringway::placement::CpuId;
use serde::{Deserialize, Serialize};

use crate::contest::{Measured, Sample};
use crate::cpus::CpuPair;
use crate::edge::socket::{Idle, Peer, serve};
use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::pinned::run_on;
use crate::spent::{Spent, monotonic_s};

use super::ours::{Edges, Remote};
use super::raw_tcp::RawTcp;
use super::road::at_a_rate_from;
use super::schedule::{OpenLoop, Schedule};
use super::{Answered, Echo, Way, require_answers};

/// From when both are ready until the first batch is due.
const AHEAD: Duration = Duration::from_millis(2);

/// What carries the batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// Two edges over sockets, one each way.
    Edges(Idle),
    /// A TCP connection that is polled, and frames of so many bytes on it both ways.
    Raw {
        /// Bytes of each.
        frame_bytes: usize,
    },
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edges(idle) => f.write_str(idle.name()),
            Self::Raw { frame_bytes } => write!(f, "{frame_bytes}"),
        }
    }
}

impl FromStr for Carrier {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(idle) = Idle::ALL.into_iter().find(|idle| idle.name() == text) {
            return Ok(Self::Edges(idle));
        }
        let frame_bytes = text.parse();
        let frame_bytes = frame_bytes.map_err(|_| format!("nothing is carried by {text:?}"))?;
        Ok(Self::Raw { frame_bytes })
    }
}

/// What the second process says at the end.
#[derive(Debug, Serialize, Deserialize)]
struct Recorded {
    answered: Answered,
    /// As [`Latencies::encode`] gives them.
    latencies: Vec<u8>,
}

/// Runs both processes, this one as the first, and puts together what they recorded.
///
/// # Errors
/// When a batch is lost or changed, or a process cannot be started or pinned.
pub(super) fn sample(
    cpus: CpuPair,
    carrier: Carrier,
    schedule: Schedule,
    percentile: f64,
) -> Result<Sample, BenchError> {
    let Schedule { rate, count, .. } = schedule;
    let echo = Echo::Both {
        carrier,
        rate,
        count,
    };
    let words = ["echo", &echo.to_string(), &cpus.second.to_string()];
    let mut peer = Peer::start(&words.map(str::to_owned))?;
    let to = peer.address;
    let before = Spent::of_process();
    let first = run_on(cpus.first, || first(to, carrier, schedule))??;
    let spent = Spent::of_process() - before;
    let recorded: Recorded = peer.received()?;
    require_answers(recorded.answered.count, first.sent())?;
    let wall = first.wall();
    let measured = [
        Measured::by("first", first.into_latencies()),
        Measured::by("second", Latencies::decode(&recorded.latencies)?),
    ];
    let latencies = merged(&measured);
    let value = latencies.percentile_us(percentile);
    Ok(
        Sample::latency(value, wall, spent + recorded.answered.spent)
            .with_latencies(latencies)
            .measured_by(measured.into()),
    )
}

/// In the second process.
///
/// # Errors
/// When it cannot be pinned, or what comes is not what is sent.
pub(super) fn second(
    carrier: Carrier,
    schedule: Schedule,
    cpu: CpuId,
) -> Result<String, BenchError> {
    serve(cpu, |listener| {
        let trips = answer(&listener, carrier, schedule)?;
        Ok(Recorded {
            answered: Answered::now(trips.sent()),
            latencies: trips.into_latencies().encode()?,
        })
    })
}

/// The times of all processes.
fn merged(measured: &[Measured]) -> Latencies {
    let mut all = Latencies::new();
    measured.iter().for_each(|one| all.add(&one.latencies));
    all
}

/// The process that connects, and says when the first batch is due.
fn first(to: SocketAddr, carrier: Carrier, schedule: Schedule) -> Result<OpenLoop, BenchError> {
    let other = TcpStream::connect(to)?;
    match carrier {
        Carrier::Edges(idle) => {
            let edges = Edges::open(Remote::Socket, to, idle)?;
            over_edges(edges, schedule, say_when(other)?)
        }
        Carrier::Raw { frame_bytes } => {
            let stream = RawTcp::open(to, true, frame_bytes, Way::Same)?;
            over_tcp(stream, schedule, say_when(other)?)
        }
    }
}

/// The process that listens, and is told.
fn answer(
    listener: &TcpListener,
    carrier: Carrier,
    schedule: Schedule,
) -> Result<OpenLoop, BenchError> {
    let (other, _) = listener.accept()?;
    match carrier {
        Carrier::Edges(idle) => {
            let edges = Edges::accept(Remote::Socket, listener, idle)?;
            over_edges(edges, schedule, hear_when(other)?)
        }
        Carrier::Raw { frame_bytes } => {
            let stream = RawTcp::accept(listener, true, frame_bytes)?;
            over_tcp(stream, schedule, hear_when(other)?)
        }
    }
}

/// Once the other is ready, the first batch is due soon.
fn say_when(mut other: TcpStream) -> Result<Instant, BenchError> {
    other.read_exact(&mut [0])?;
    let at_s = monotonic_s() + AHEAD.as_secs_f64();
    other.write_all(&at_s.to_le_bytes())?;
    Ok(instant_of(at_s))
}

/// This process is ready, and hears when the first batch is due.
fn hear_when(mut other: TcpStream) -> Result<Instant, BenchError> {
    other.write_all(&[1])?;
    let mut at_s = [0; 8];
    other.read_exact(&mut at_s)?;
    Ok(instant_of(f64::from_le_bytes(at_s)))
}

fn over_edges(
    mut edges: Edges,
    schedule: Schedule,
    began: Instant,
) -> Result<OpenLoop, BenchError> {
    let trips = at_a_rate_from(began, &mut edges, schedule)?;
    edges.finish()?;
    Ok(trips)
}

fn over_tcp(
    mut stream: RawTcp,
    schedule: Schedule,
    began: Instant,
) -> Result<OpenLoop, BenchError> {
    let trips = at_a_rate_from(began, &mut stream, schedule)?;
    stream.finish()?;
    Ok(trips)
}

/// The instant at a time of the clock that all processes of the machine share, to the time that it
/// takes to look at that clock.
fn instant_of(at_s: f64) -> Instant {
    let ahead_s = at_s - monotonic_s();
    let apart = Duration::from_secs_f64(ahead_s.abs());
    match ahead_s >= 0.0 {
        true => Instant::now() + apart,
        false => Instant::now() - apart,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::thread;

    use super::*;

    /// Both parties, as two threads.
    fn both(carrier: Carrier) -> [OpenLoop; 2] {
        let schedule = Schedule::new(10_000, 200);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = listener.local_addr().unwrap();
        let second = thread::spawn(move || answer(&listener, carrier, schedule).unwrap());
        let first = first(to, carrier, schedule).unwrap();
        [first, second.join().unwrap()]
    }

    #[test]
    fn each_party_measures_all_that_the_other_sends() {
        for carrier in [
            Carrier::Edges(Idle::Adaptive),
            Carrier::Raw { frame_bytes: 64 },
        ] {
            let measured = both(carrier).map(|trips| {
                assert_eq!(trips.sent(), 200);
                assert!(trips.wall() >= Duration::from_micros(19_900));
                // As another process says it.
                let said = trips.into_latencies().encode().unwrap();
                Measured::by("one", Latencies::decode(&said).unwrap())
            });
            let longest = |latencies: &Latencies| latencies.histogram().max();
            let all = merged(&measured);
            for Measured { latencies, .. } in &measured {
                assert_eq!(latencies.count(), 200);
                assert!(latencies.percentile_us(50.0) > 0.1);
                assert!(longest(latencies) <= longest(&all));
            }
            assert_eq!(all.count(), 400);
        }
    }

    #[test]
    fn an_instant_is_as_far_away_as_its_time() {
        let (away, rounding) = (Duration::from_millis(100), Duration::from_micros(10));
        let before = Instant::now();
        let later = instant_of(monotonic_s() + away.as_secs_f64());
        let earlier = instant_of(monotonic_s() - away.as_secs_f64());
        let after = Instant::now();
        for (found, least, most) in [
            (later, before + away, after + away),
            (earlier, before - away, after - away),
        ] {
            assert!(found >= least - rounding && found <= most + rounding);
        }
    }
}
