//! The time from when a one-row batch was to be sent until it is back from another process.
//!
//! Batches are due at a fixed rate, whether or not those before are back, and the time of each
//! counts from when it was due: what a stall delays is late, and is not left out. The other
//! process takes each batch in and sends it on; both are pinned.

mod ours;
mod raw_tcp;
mod schedule;
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
use crate::spent::Spent;

use schedule::Schedule;

/// Batches of a run that is only checked; calibration begins with it.
const SMOKE_TRIPS: u64 = 50;

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
    /// It reads frames, and writes them back.
    Raw(Raw),
}

/// Frames over bare connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    /// Whether both processes poll, or sleep until something comes.
    polls: bool,
    frame_bytes: usize,
    way: Way,
}

/// How frames come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
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
            let schedule = |count| Schedule {
                rate: mode.rate,
                count,
            };
            for (baseline_name, way) in WAYS {
                let raw = Echo::Raw(Raw {
                    polls: mode.baseline_polls,
                    frame_bytes,
                    way,
                });
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
    Ok(())
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
fn frame_bytes_of(cpus: CpuPair) -> Result<usize, BenchError> {
    let schedule = Schedule {
        rate: BUSY_RATE,
        count: FRAME_TRIPS,
    };
    Ok(run(cpus, Echo::Edge(Idle::Spin), schedule)?.frame_bytes)
}

/// What one run gave.
struct Run {
    latencies: Latencies,
    wall: Duration,
    /// What both processes took.
    spent: Spent,
    frame_bytes: usize,
}

fn run(cpus: CpuPair, echo: Echo, schedule: Schedule) -> Result<Run, BenchError> {
    let words = ["echo", &echo.to_string(), &cpus.second.to_string()];
    let mut peer = Peer::start(&words.map(str::to_owned))?;
    let to = peer.address;
    let before = Spent::of_process();
    let (latencies, wall, frame_bytes) = run_on(cpus.first, || match echo {
        Echo::Edge(idle) => ours::send(to, idle, schedule),
        Echo::Raw(raw) => raw_tcp::send(to, raw, schedule),
    })??;
    let spent = Spent::of_process() - before;
    let answered: Answered = peer.received()?;
    if answered.count != schedule.count {
        return Err(BenchError::new(format!(
            "{} batches came to the other process, and {} were sent",
            answered.count, schedule.count
        )));
    }
    Ok(Run {
        latencies,
        wall,
        spent: spent + answered.spent,
        frame_bytes,
    })
}

/// What the other process says at the end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Answered {
    count: u64,
    spent: Spent,
}

impl Answered {
    /// So many, and all that this process has taken.
    fn now(count: u64) -> Self {
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
    serve(cpu, |listener| {
        let count = match echo {
            Echo::Edge(idle) => ours::echo(&listener, idle),
            Echo::Raw(raw) => raw_tcp::echo(&listener, raw),
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
            Self::Raw(raw) => {
                let waits = if raw.polls { "polls" } else { "sleeps" };
                let way = match raw.way {
                    Way::Same => "same",
                    Way::Other => "other",
                };
                write!(f, "{waits}:{way}:{}", raw.frame_bytes)
            }
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
                Self::Raw(Raw {
                    polls: waits == "polls",
                    frame_bytes: bytes.parse().map_err(|_| format!("{bytes:?} is no size"))?,
                    way: if way == "same" { Way::Same } else { Way::Other },
                })
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
        let raw = |(polls, way)| {
            Echo::Raw(Raw {
                polls,
                frame_bytes: 264,
                way,
            })
        };
        let raws = [(true, Way::Same), (false, Way::Other)].map(raw);
        let edges = [Idle::Spin, Idle::Adaptive, Idle::Park].map(Echo::Edge);
        for echo in edges.into_iter().chain(raws) {
            assert_eq!(echo.to_string().parse(), Ok(echo));
        }
    }
}
