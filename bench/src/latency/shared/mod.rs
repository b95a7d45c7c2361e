//! The time of a round trip through shared memory, one after the other: 64 bytes over the link,
//! and a one-row batch over the whole edge, beside what else could answer.
//!
//! Each trip begins when the one before it is back, so that nothing is late: at a fixed rate the
//! time would be mostly that of looking at the clock.

mod bounce;

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use ringway::placement::CpuId;

use crate::contest::{Contest, Harness, Measure, Sample};
use crate::cpus::CpuPair;
use crate::edge::socket::{Idle, Peer, serve};
use crate::error::BenchError;
use crate::latency::Answered;
use crate::pinned::run_on;
use crate::shared::meeting::Meeting;
use crate::spent::Spent;

use super::ours::{self, Edges, Remote};
use super::road::{WARM_UP_TRIPS, at_a_rate, one_by_one};
use super::schedule::Schedule;
use super::{PERCENTILES, Run, SMOKE_TRIPS, require_answers};

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
    /// 64 bytes, over Aeron's IPC, polled.
    #[cfg(feature = "aeron")]
    Aeron,
    /// 64 bytes, over a Unix stream whose ends sleep.
    UnixStream,
    /// 64 bytes, over two pipes whose ends sleep.
    Pipe,
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
        #[cfg(feature = "aeron")]
        Self::Aeron,
        Self::UnixStream,
        Self::Pipe,
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
            #[cfg(feature = "aeron")]
            Self::Aeron => return f.write_str("aeron"),
            Self::UnixStream => return f.write_str("unix-stream"),
            Self::Pipe => return f.write_str("pipe"),
        };
        write!(f, "{name}:{}", idle.name())
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
        for idle in Idle::ALL {
            for (percentile, of_100) in PERCENTILES {
                let name = format!("latency/shared/{load}/{}/{percentile}", idle.name());
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

/// So many round trips one after the other, and a percentile of them in microseconds.
///
/// # Errors
/// When something else comes back than was sent, or a process cannot be started or pinned.
pub(crate) fn sample(
    cpus: CpuPair,
    echo: Echo,
    count: u64,
    percentile: f64,
) -> Result<Sample, BenchError> {
    let count = WARM_UP_TRIPS + count;
    let (times, spent, answered) = with_peer(cpus, echo, count, |to, meeting, trips| match echo {
        Echo::Row(idle) => {
            let mut edges = Edges::open(Remote::Shared, to, idle)?;
            let times = one_by_one(&mut edges, count)?;
            edges.finish()?;
            Ok(times)
        }
        _ => bounce::ask(echo, meeting, trips),
    })?;
    require_answers(answered, count)?;
    let value = times.latencies.percentile_us(percentile);
    let sample = Sample::latency(value, times.wall, spent);
    Ok(sample.with_latencies(times.latencies))
}

/// Rows over edges, or 64 bytes over bare rings, as they are due.
///
/// # Errors
/// When something else comes back than was sent, or a process cannot be started or pinned.
pub(crate) fn run_at_a_rate(
    cpus: CpuPair,
    echo: Echo,
    schedule: Schedule,
) -> Result<Run, BenchError> {
    let (trips, spent, answered) = with_peer(cpus, echo, u64::MAX, |to, meeting, _| match echo {
        Echo::Row(idle) => {
            let mut edges = Edges::open(Remote::Shared, to, idle)?;
            let trips = at_a_rate(&mut edges, schedule)?;
            edges.finish()?;
            Ok(trips)
        }
        _ => bounce::ask_at_a_rate(meeting, schedule),
    })?;
    require_answers(answered, trips.sent())?;
    Ok(Run::of(trips, spent))
}

/// What it gives on the first CPU, while another process answers on the second; beside it what
/// both took, and how many were answered.
fn with_peer<T: Send>(
    cpus: CpuPair,
    echo: Echo,
    count: u64,
    ask: impl FnOnce(SocketAddr, &Meeting, &Trips) -> Result<T, BenchError> + Send,
) -> Result<(T, Spent, u64), BenchError> {
    let meeting = Meeting::arrange()?;
    let trips = Trips {
        count,
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
    let gives = run_on(cpus.first, || ask(to, &meeting, &trips))??;
    let spent = Spent::of_process() - before;
    let answered: Answered = peer.received()?;
    Ok((gives, spent + answered.spent, answered.count))
}

/// In the other process: answers.
///
/// # Errors
/// When it cannot be pinned, or what comes is not what is sent.
pub(crate) fn echo(echo: Echo, trips: &Trips, cpu: CpuId) -> Result<String, BenchError> {
    serve(cpu, |listener| {
        let count = match echo {
            Echo::Row(idle) => ours::echo(Remote::Shared, &listener, idle),
            _ => bounce::answer(echo, trips),
        };
        count.map(Answered::now)
    })
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
