//! The time of a round trip through shared memory, one after the other: 64 bytes over the link,
//! and a one-row batch over the whole edge, beside what else could answer.
//!
//! Each trip begins when the one before it is back, so that nothing is late: at a fixed rate the
//! time would be mostly that of looking at the clock.

mod bounce;
mod row;

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use ringway::placement::CpuId;

use crate::contest::{Contest, Harness, Measure, Sample};
use crate::cpus::CpuPair;
use crate::edge::socket::{Idle, Peer, serve};
use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::latency::Answered;
use crate::pinned::run_on;
use crate::shared::meeting::Meeting;
use crate::spent::Spent;

use super::{PERCENTILES, SMOKE_TRIPS};

/// Round trips before those that count.
const WARM_UP_TRIPS: u64 = 20;

const MODES: [Idle; 3] = [Idle::Spin, Idle::Adaptive, Idle::Park];

/// What goes there and back, and how it is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Echo {
    /// One-row batches, over edges.
    Row(Idle),
    /// 64 bytes, over links.
    Link(Idle),
    /// 64 bytes, over bare rings that are polled.
    Memfd,
    /// 64 bytes, over iceoryx2's publish-subscribe, polled.
    #[cfg(feature = "iceoryx2")]
    Iceoryx,
    /// Nothing but wake-ups.
    Futex,
}

impl Echo {
    const ALL: &[Self] = &[
        Self::Row(Idle::Spin),
        Self::Row(Idle::Adaptive),
        Self::Row(Idle::Park),
        Self::Link(Idle::Spin),
        Self::Link(Idle::Adaptive),
        Self::Link(Idle::Park),
        Self::Memfd,
        #[cfg(feature = "iceoryx2")]
        Self::Iceoryx,
        Self::Futex,
    ];

    const POLLED: &[(&'static str, Self)] = &[
        ("memfd ring", Self::Memfd),
        #[cfg(feature = "iceoryx2")]
        ("iceoryx2", Self::Iceoryx),
    ];

    /// What is compared with where both wait like this.
    const fn baselines(idle: Idle) -> &'static [(&'static str, Self)] {
        match idle {
            Idle::Spin | Idle::Adaptive => Self::POLLED,
            Idle::Park => &[("futex", Self::Futex)],
        }
    }
}

impl fmt::Display for Echo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, idle) = match self {
            Self::Row(idle) => ("row", *idle),
            Self::Link(idle) => ("link", *idle),
            Self::Memfd => return f.write_str("memfd"),
            #[cfg(feature = "iceoryx2")]
            Self::Iceoryx => return f.write_str("iceoryx2"),
            Self::Futex => return f.write_str("futex"),
        };
        write!(f, "{name}:{}", mode(idle))
    }
}

impl FromStr for Echo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.iter().copied();
        let found = all.find(|echo| echo.to_string() == text);
        found.ok_or_else(|| format!("there is no echo {text:?}"))
    }
}

const fn mode(idle: Idle) -> &'static str {
    match idle {
        Idle::Spin => "spin",
        Idle::Adaptive => "adaptive",
        Idle::Park => "park",
    }
}

/// How often, and where the processes meet.
#[derive(Clone, Debug)]
pub(crate) struct Trips {
    pub(crate) count: u64,
    pub(crate) meeting: String,
}

/// Measures all cases of `latency --transport shared`.
///
/// # Errors
/// When something else comes back than was sent, or a process cannot be started or pinned.
pub(crate) fn measure(harness: &mut Harness) -> Result<(), BenchError> {
    let loads: [(&str, fn(Idle) -> Echo); 2] = [("raw64", Echo::Link), ("row", Echo::Row)];
    for (load, ours) in loads {
        for idle in MODES {
            for (percentile, of_100) in PERCENTILES {
                let name = format!("latency/shared/{load}/{}/{percentile}", mode(idle));
                if cfg!(not(feature = "iceoryx2")) && idle != Idle::Park {
                    harness.leave_out_unbuilt(&name, "iceoryx2", "iceoryx2");
                }
                compare(harness, &name, ours(idle), Echo::baselines(idle), of_100)?;
            }
        }
    }
    Ok(())
}

fn compare(
    harness: &mut Harness,
    name: &str,
    ours: Echo,
    baselines: &[(&'static str, Echo)],
    percentile: f64,
) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    for &(baseline_name, baseline) in baselines {
        harness.measure(Contest {
            name: name.to_owned(),
            unit: "us",
            measure: Measure::Latency,
            baseline_name,
            count: SMOKE_TRIPS,
            ours: Box::new(move |count| sample(cpus, ours, count, percentile)),
            baseline: Box::new(move |count| sample(cpus, baseline, count, percentile)),
        })?;
    }
    Ok(())
}

fn sample(cpus: CpuPair, echo: Echo, count: u64, percentile: f64) -> Result<Sample, BenchError> {
    let meeting = Meeting::arrange()?;
    let trips = Trips {
        count: WARM_UP_TRIPS + count,
        meeting: meeting.name().to_owned(),
    };
    let words = [
        "echo-shared".to_owned(),
        echo.to_string(),
        trips.count.to_string(),
        trips.meeting.clone(),
        cpus.second.to_string(),
    ];
    let mut peer = Peer::start(&words)?;
    let to = peer.address;
    let before = Spent::of_process();
    let times = run_on(cpus.first, || match echo {
        Echo::Row(idle) => row::ask(to, idle, trips.count),
        _ => bounce::ask(echo, &meeting, &trips),
    })??;
    let spent = Spent::of_process() - before;
    let answered: Answered = peer.received()?;
    if answered.count != trips.count {
        return Err(BenchError::new(format!(
            "{} of {} were answered",
            answered.count, trips.count
        )));
    }
    let value = times.latencies.percentile_us(percentile);
    let sample = Sample::latency(value, times.wall, spent + answered.spent);
    Ok(sample.with_latencies(times.latencies))
}

/// In the other process: answers.
///
/// # Errors
/// When it cannot be pinned, or what comes is not what is sent.
pub(crate) fn echo(echo: Echo, trips: &Trips, cpu: CpuId) -> Result<String, BenchError> {
    serve(cpu, |listener| {
        let count = match echo {
            Echo::Row(idle) => row::answer(&listener, idle),
            _ => bounce::answer(echo, trips),
        };
        count.map(Answered::now)
    })
}

/// How long each trip took.
struct Times {
    began: Instant,
    last: Instant,
    trips: u64,
    latencies: Latencies,
    wall: Duration,
}

impl Times {
    /// The first trip begins now.
    fn begin() -> Self {
        let latencies = Latencies::new();
        let now = Instant::now();
        Self {
            began: now,
            last: now,
            trips: 0,
            latencies,
            wall: Duration::ZERO,
        }
    }

    /// A trip is over, and the next begins.
    #[inline]
    fn is_back(&mut self) {
        let now = Instant::now();
        if self.trips >= WARM_UP_TRIPS {
            self.latencies.record(now - self.last);
        }
        self.trips += 1;
        self.last = now;
        self.wall = now - self.began;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_process_is_told_what_to_do_in_one_word() {
        for echo in Echo::ALL {
            assert_eq!(echo.to_string().parse(), Ok(*echo));
        }
        assert!("row".parse::<Echo>().is_err());
    }
}
