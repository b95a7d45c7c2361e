//! The time from when a one-row batch was to be sent until it is back from another process.
//!
//! Batches are due at a fixed rate, whether or not those before are back, and the time of each
//! counts from when it was due: what a stall delays is late, and is not left out. The other
//! process takes each batch in and sends it on; both are pinned.

mod both;
pub(crate) mod closed_loop;
mod local;
pub(crate) mod ours;
pub(crate) mod raw_tcp;
pub(crate) mod road;
pub(crate) mod schedule;
pub(crate) mod shared;

use std::str::FromStr;
use std::time::Duration;

use ringway::placement::CpuId;
use serde::{Deserialize, Serialize};

use crate::contest::{Contest, Harness, Measure, Sample};
use crate::cpus::CpuPair;
use crate::edge::socket::{Idle, Peer, serve};
use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::pinned::run_on;
use crate::ring::round_trip;
use crate::spent::Spent;

use ours::Edges;
use raw_tcp::RawTcp;
use road::{WARM_UP_TRIPS, at_a_rate, one_by_one};
use schedule::{OpenLoop, Schedule};

pub(crate) use local::Carrier;
pub(crate) use ours::Remote;

/// Batches of a run that is only checked; calibration begins with it.
pub(crate) const SMOKE_TRIPS: u64 = 50;

/// Round trips by which it is found out how long a frame is.
const FRAME_TRIPS: u64 = 100;

/// Round trips a second where the CPUs are kept busy, and where they may sleep in between.
const BUSY_RATE: u64 = 20_000;
const QUIET_RATE: u64 = 1_000;

/// What is looked at of all round trips.
const PERCENTILES: [(&str, f64); 3] = [("p50", 50.0), ("p99", 99.0), ("p999", 99.9)];

/// How both processes wait, and how many batches are due a second.
struct Mode {
    name: &'static str,
    idle: Idle,
    /// Whether the baseline polls, or sleeps until something comes.
    baseline_polls: bool,
    rate: u64,
}

const MODES: [Mode; 4] = [
    Mode {
        name: "spin",
        idle: Idle::Spin,
        baseline_polls: true,
        rate: BUSY_RATE,
    },
    Mode {
        name: "adaptive",
        idle: Idle::Adaptive,
        baseline_polls: true,
        rate: BUSY_RATE,
    },
    Mode {
        name: "adaptive-quiet",
        idle: Idle::Adaptive,
        baseline_polls: false,
        rate: QUIET_RATE,
    },
    Mode {
        name: "park",
        idle: Idle::Park,
        baseline_polls: false,
        rate: QUIET_RATE,
    },
];

/// What the other process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Echo {
    /// It takes batches from an edge, and sends them on over another.
    Edge(Idle),
    /// It reads frames of so many bytes, and writes them back.
    Raw {
        /// Whether it polls, or sleeps until something comes.
        polls: bool,
        frame_bytes: usize,
        way: Way,
    },
    /// It sends batches of its own while others come.
    Both {
        /// What carries them.
        carrier: both::Carrier,
        /// How many are due a second, each way.
        rate: u64,
        /// How many there are, each way.
        count: u64,
    },
}

/// How frames come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Over the connection that they came over.
    Same,
    /// Over another, as between two edges.
    Other,
}

/// The baselines of all cases.
const WAYS: [(&str, Way); 2] = [
    ("raw tcp", Way::Same),
    ("raw tcp, two connections", Way::Other),
];

/// Measures all cases of `latency --transport socket`.
///
/// # Errors
/// When a batch is lost or changed, or a process cannot be started or pinned.
pub(crate) fn measure(harness: &mut Harness) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    let mut frame_bytes = None;
    for mode in &MODES {
        for (percentile, of_100) in PERCENTILES {
            let name = format!("latency/socket/row/{}/{percentile}", mode.name);
            if !harness.wants(&name) {
                continue;
            }
            let frame_bytes = match frame_bytes {
                Some(bytes) => bytes,
                None => *frame_bytes.insert(frame_bytes_of(cpus)?),
            };
            let schedule = |count| Schedule::new(mode.rate, count);
            for (baseline_name, way) in WAYS {
                let raw = Echo::Raw {
                    polls: mode.baseline_polls,
                    frame_bytes,
                    way,
                };
                harness.measure(Contest {
                    name: name.clone(),
                    unit: "us",
                    measure: Measure::Latency,
                    baseline_name,
                    count: SMOKE_TRIPS,
                    ours: Box::new(move |count| {
                        sample(cpus, Echo::Edge(mode.idle), schedule(count), of_100)
                    }),
                    baseline: Box::new(move |count| sample(cpus, raw, schedule(count), of_100)),
                })?;
            }
        }
    }
    measure_both_ways(harness)
}

/// Batches there and others back at the same time, at the rate at which the CPUs are kept busy.
fn measure_both_ways(harness: &mut Harness) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    let ours = both::Carrier::Edges(Idle::Adaptive);
    for (percentile, of_100) in PERCENTILES {
        let name = format!("latency/socket/both/{percentile}");
        if !harness.wants(&name) {
            continue;
        }
        let frame_bytes = frame_bytes_of(cpus)?;
        let raw = both::Carrier::Raw { frame_bytes };
        let schedule = |count| Schedule::new(BUSY_RATE, count);
        harness.measure(Contest {
            name,
            unit: "us",
            measure: Measure::Latency,
            baseline_name: "raw tcp",
            count: SMOKE_TRIPS,
            ours: Box::new(move |count| both::sample(cpus, ours, schedule(count), of_100)),
            baseline: Box::new(move |count| both::sample(cpus, raw, schedule(count), of_100)),
        })?;
    }
    Ok(())
}

/// Measures all cases of `latency --transport local`: trips one after the other between two
/// threads, since at a fixed rate the time would be mostly that of looking at the clock.
///
/// # Errors
/// When a batch is lost or changed, or a thread cannot be pinned.
pub(crate) fn measure_local(harness: &mut Harness) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    for idle in Idle::ALL {
        for (percentile, of_100) in PERCENTILES {
            let ours = move |count| local_sample(cpus, Carrier::Edge(idle), count, of_100);
            let rtrb = move |count| local_sample(cpus, Carrier::Rtrb, count, of_100);
            let futex = move |count| {
                let sample = round_trip::futex(cpus, count)?;
                let latencies = sample.latencies.as_ref();
                let value = latencies.map_or(0.0, |all| all.percentile_us(of_100));
                Ok(Sample { value, ..sample })
            };
            harness.measure(Contest {
                name: format!("latency/local/row/{}/{percentile}", idle.name()),
                unit: "us",
                measure: Measure::Latency,
                baseline_name: if idle == Idle::Park { "futex" } else { "rtrb" },
                count: SMOKE_TRIPS,
                ours: Box::new(ours),
                baseline: match idle {
                    Idle::Park => Box::new(futex),
                    Idle::Spin | Idle::Adaptive => Box::new(rtrb),
                },
            })?;
        }
    }
    Ok(())
}

fn local_sample(
    cpus: CpuPair,
    carrier: Carrier,
    count: u64,
    percentile: f64,
) -> Result<Sample, BenchError> {
    let count = WARM_UP_TRIPS + count;
    let pair = local::run(cpus, carrier, |road| one_by_one(road, count))?;
    require_answers(pair.second, count)?;
    let times = pair.first;
    let value = times.latencies.percentile_us(percentile);
    Ok(Sample::latency(value, times.wall, pair.spent).with_latencies(times.latencies))
}

fn sample(
    cpus: CpuPair,
    echo: Echo,
    schedule: Schedule,
    percentile: f64,
) -> Result<Sample, BenchError> {
    let run = run(cpus, echo, schedule)?;
    let value = run.latencies.percentile_us(percentile);
    Ok(Sample::latency(value, run.wall, run.spent).with_latencies(run.latencies))
}

/// How long the frame of a one-row batch is.
///
/// # Errors
/// As for [`measure`].
pub(crate) fn frame_bytes_of(cpus: CpuPair) -> Result<usize, BenchError> {
    let schedule = Schedule::new(BUSY_RATE, FRAME_TRIPS);
    let run = run(cpus, Echo::Edge(Idle::Spin), schedule)?;
    Ok(run.frame_bytes)
}

/// What one run gave.
pub(crate) struct Run {
    pub(crate) latencies: Latencies,
    pub(crate) wall: Duration,
    /// What both parties took.
    pub(crate) spent: Spent,
    /// As in [`OpenLoop`].
    pub(crate) held_share: f64,
    frame_bytes: usize,
}

impl Run {
    pub(crate) fn of(trips: OpenLoop, spent: Spent) -> Self {
        Self {
            wall: trips.wall(),
            held_share: trips.held_share(),
            latencies: trips.into_latencies(),
            spent,
            frame_bytes: 0,
        }
    }
}

/// Sends batches to another process over a socket as they are due, and takes them back.
///
/// # Errors
/// As for [`measure`].
pub(crate) fn run(cpus: CpuPair, echo: Echo, schedule: Schedule) -> Result<Run, BenchError> {
    let words = ["echo", &echo.to_string(), &cpus.second.to_string()];
    let mut peer = Peer::start(&words.map(str::to_owned))?;
    let to = peer.address;
    let before = Spent::of_process();
    let (trips, frame_bytes) = run_on(cpus.first, || match echo {
        Echo::Edge(idle) => {
            let mut edges = Edges::open(Remote::Socket, to, idle)?;
            let trips = at_a_rate(&mut edges, schedule)?;
            let frame_bytes = edges.frame_bytes();
            edges.finish()?;
            Ok::<_, BenchError>((trips, frame_bytes))
        }
        Echo::Raw {
            polls,
            frame_bytes,
            way,
        } => {
            let mut stream = RawTcp::open(to, polls, frame_bytes, way)?;
            Ok((at_a_rate(&mut stream, schedule)?, frame_bytes))
        }
        Echo::Both { .. } => Err(BenchError::new("what comes is no answer")),
    })??;
    let spent = Spent::of_process() - before;
    let answered: Answered = peer.received()?;
    require_answers(answered.count, trips.sent())?;
    Ok(Run {
        frame_bytes,
        ..Run::of(trips, spent + answered.spent)
    })
}

/// Batches to another thread and back as they are due.
///
/// # Errors
/// When a batch is lost or changed, or a thread cannot be pinned.
pub(crate) fn run_locally(
    cpus: CpuPair,
    carrier: Carrier,
    schedule: Schedule,
) -> Result<Run, BenchError> {
    let pair = local::run(cpus, carrier, |road| at_a_rate(road, schedule))?;
    require_answers(pair.second, pair.first.sent())?;
    Ok(Run::of(pair.first, pair.spent))
}

/// # Errors
/// When not all that was sent came to the other party.
pub(crate) fn require_answers(answered: u64, sent: u64) -> Result<(), BenchError> {
    if answered == sent {
        return Ok(());
    }
    Err(BenchError::new(format!(
        "{answered} batches came to the other side, and {sent} were sent"
    )))
}

/// What the other process says at the end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) count: u64,
    pub(crate) spent: Spent,
}

impl Answered {
    /// So many, and all that this process has taken.
    pub(crate) fn now(count: u64) -> Self {
        Self {
            count,
            spent: Spent::of_process(),
        }
    }
}

/// In the other process: sends back what comes.
///
/// # Errors
/// When it cannot be pinned, or what comes is not what is sent.
pub(crate) fn echo(echo: Echo, cpu: CpuId) -> Result<String, BenchError> {
    if let Echo::Both {
        carrier,
        rate,
        count,
    } = echo
    {
        return both::second(carrier, Schedule::new(rate, count), cpu);
    }
    serve(cpu, |listener| {
        let count = match echo {
            Echo::Edge(idle) => ours::echo(Remote::Socket, &listener, idle),
            Echo::Raw {
                polls,
                frame_bytes,
                way,
            } => raw_tcp::echo(&listener, polls, frame_bytes, way),
            Echo::Both { .. } => Err(BenchError::new("what comes is not sent back")),
        };
        count.map(Answered::now)
    })
}

impl std::fmt::Display for Echo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Edge(Idle::Spin) => f.write_str("spin"),
            Self::Edge(Idle::Adaptive) => f.write_str("adaptive"),
            Self::Edge(Idle::Park) => f.write_str("park"),
            Self::Raw {
                polls,
                frame_bytes,
                way,
            } => {
                let waits = if *polls { "polls" } else { "sleeps" };
                let way = if *way == Way::Same { "same" } else { "other" };
                write!(f, "{waits}:{way}:{frame_bytes}")
            }
            Self::Both {
                carrier,
                rate,
                count,
            } => write!(f, "both:{rate}:{count}:{carrier}"),
        }
    }
}

impl FromStr for Echo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split(':');
        let echo = match (words.next(), words.next(), words.next()) {
            (Some("spin"), None, None) => Self::Edge(Idle::Spin),
            (Some("adaptive"), None, None) => Self::Edge(Idle::Adaptive),
            (Some("park"), None, None) => Self::Edge(Idle::Park),
            (Some(waits @ ("polls" | "sleeps")), Some(way @ ("same" | "other")), Some(bytes)) => {
                Self::Raw {
                    polls: waits == "polls",
                    frame_bytes: bytes.parse().map_err(|_| format!("{bytes:?} is no size"))?,
                    way: if way == "same" { Way::Same } else { Way::Other },
                }
            }
            (Some("both"), Some(rate), Some(count)) => {
                let number =
                    |word: &str| word.parse().map_err(|_| format!("{word:?} is no number"));
                Self::Both {
                    carrier: words.collect::<Vec<_>>().join(":").parse()?,
                    rate: number(rate)?,
                    count: number(count)?,
                }
            }
            _ => return Err(format!("there is no echo {text:?}")),
        };
        Ok(echo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_process_is_told_what_to_do_in_one_word() {
        let raw = |(polls, way)| Echo::Raw {
            polls,
            frame_bytes: 264,
            way,
        };
        let raws = [(true, Way::Same), (false, Way::Other)].map(raw);
        let edges = [Idle::Spin, Idle::Adaptive, Idle::Park].map(Echo::Edge);
        let carriers = [
            both::Carrier::Edges(Idle::Park),
            both::Carrier::Raw { frame_bytes: 264 },
        ];
        let both = carriers.map(|carrier| Echo::Both {
            carrier,
            rate: 20_000,
            count: 50,
        });
        for echo in edges.into_iter().chain(raws).chain(both) {
            assert_eq!(echo.to_string().parse(), Ok(echo));
        }
    }
}
