//! Edges over shared memory between two pinned processes, beside what else could move as many
//! bytes: a bare ring, our own sockets, iceoryx2 and a Unix stream.
//!
//! The edge moves record batches, as over sockets. The others move messages of as many bytes as
//! a batch has, and nothing is made of them: they are copied in, and summed where they lie.

mod bare_ring;
mod one_way;
mod ours;
mod payload;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ringway::placement::CpuId;

use crate::contest::{Contest, Harness, Measure, Sample};
use crate::cpus::CpuPair;
use crate::edge::socket::{self, Kind, Load, Peer, Prebuilt, ROWS, Received, Tally, Total, serve};
use crate::error::BenchError;
use crate::pinned::run_on;
use crate::shared::meeting::Meeting;
use crate::shared::memfd::Copied;

pub(crate) use bare_ring::BareRing;
pub(crate) use one_way::Course;
pub(crate) use ours::options;
pub(crate) use payload::Payloads;

/// Batches, or messages, of a run that is only checked; calibration begins with it.
const SMOKE_BATCHES: u64 = 6;

/// Bytes of the messages of `edge/shared/raw64`.
pub(crate) const RAW_BYTES: usize = 64;

/// What carries the batches, or messages of as many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// The edge.
    Edge,
    /// The link under it.
    Link,
    /// A bare ring.
    Memfd(Copied),
    /// iceoryx2's publish-subscribe.
    #[cfg(feature = "iceoryx2")]
    Iceoryx,
    /// Aeron's IPC.
    #[cfg(feature = "aeron")]
    Aeron,
    /// A Unix stream, a message a write.
    UnixStream,
    /// A pipe, a message a write.
    Pipe,
}

impl Carrier {
    const ALL: &[Self] = &[
        Self::Edge,
        Self::Link,
        Self::Memfd(Copied::Plain),
        Self::Memfd(Copied::Streaming),
        #[cfg(feature = "iceoryx2")]
        Self::Iceoryx,
        #[cfg(feature = "aeron")]
        Self::Aeron,
        Self::UnixStream,
        Self::Pipe,
    ];

    /// As a word of the command line.
    const fn word(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Link => "link",
            Self::Memfd(Copied::Plain) => "memfd",
            Self::Memfd(Copied::Streaming) => "memfd-streaming",
            #[cfg(feature = "iceoryx2")]
            Self::Iceoryx => "iceoryx2",
            #[cfg(feature = "aeron")]
            Self::Aeron => "aeron",
            Self::UnixStream => "unix-stream",
            Self::Pipe => "pipe",
        }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
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

/// Measures all cases of `edge --transport shared`.
///
/// # Errors
/// When a row or a message is lost, doubled or changed, or a process cannot be started or pinned.
pub(crate) fn measure(harness: &mut Harness) -> Result<(), BenchError> {
    for kind in [Kind::Int64, Kind::String100] {
        for rows in ROWS {
            batches(harness, Load { kind, rows })?;
        }
    }
    messages(harness)
}

fn batches(harness: &mut Harness, load: Load) -> Result<(), BenchError> {
    let name = format!("edge/shared/{load}");
    if !harness.wants(&name) {
        return Ok(());
    }
    if cfg!(not(feature = "iceoryx2")) {
        harness.leave_out_unbuilt(&name, "iceoryx2", "iceoryx2");
    }
    let cpus = harness.settings.cpus;
    let (prebuilt, payloads) = (&load.prebuilt(), &Payloads::of(load.bytes()));
    let mut against = |baseline_name, baseline: &dyn Fn(u64) -> Result<Sample, BenchError>| {
        harness.measure(Contest {
            name: name.clone(),
            unit: "bytes/s",
            measure: Measure::Rate,
            baseline_name,
            count: SMOKE_BATCHES,
            ours: Box::new(move |count| edge(cpus, prebuilt, count)),
            baseline: Box::new(baseline),
        })
    };
    let ring = BareRing::new(cpus, load.bytes(), payloads);
    against("memfd ring", &|count| ring.run(count))?;
    against("socket", &|count| {
        socket::run(cpus, socket::Carrier::Edge, prebuilt, count)
    })?;
    #[cfg(feature = "iceoryx2")]
    against("iceoryx2", &|count| {
        carried(cpus, Carrier::Iceoryx, load.bytes(), payloads, count)
    })?;
    against("unix stream", &|count| {
        carried(cpus, Carrier::UnixStream, load.bytes(), payloads, count)
    })
}

fn messages(harness: &mut Harness) -> Result<(), BenchError> {
    let name = "edge/shared/raw64";
    if cfg!(not(feature = "iceoryx2")) {
        harness.leave_out_unbuilt(name, "iceoryx2", "iceoryx2");
    }
    let cpus = harness.settings.cpus;
    let payloads = &Payloads::of(RAW_BYTES);
    let mut against = |baseline_name, baseline: &dyn Fn(u64) -> Result<Sample, BenchError>| {
        let rate = |sample: Sample| Sample {
            value: sample.value / RAW_BYTES as f64,
            ..sample
        };
        harness.measure(Contest {
            name: name.to_owned(),
            unit: "messages/s",
            measure: Measure::Rate,
            baseline_name,
            count: SMOKE_BATCHES,
            ours: Box::new(move |count| {
                carried(cpus, Carrier::Link, RAW_BYTES, payloads, count).map(rate)
            }),
            baseline: Box::new(move |count| baseline(count).map(rate)),
        })
    };
    let ring = BareRing::new(cpus, RAW_BYTES, payloads);
    against("memfd ring", &|count| ring.run(count))?;
    #[cfg(feature = "iceoryx2")]
    against("iceoryx2", &|count| {
        carried(cpus, Carrier::Iceoryx, RAW_BYTES, payloads, count)
    })?;
    Ok(())
}

/// The edge moves `count` batches.
///
/// # Errors
/// When a row is lost, doubled or changed, or a process cannot be started or pinned.
pub(crate) fn edge(cpus: CpuPair, prebuilt: &Prebuilt, count: u64) -> Result<Sample, BenchError> {
    let course = Course {
        carrier: Carrier::Edge,
        message_bytes: 0,
        count,
        meeting: "none".to_owned(),
        tallied: prebuilt.tallied(),
    };
    let mut peer = Peer::start(&words(&course, cpus.second))?;
    let to = peer.address;
    let meter = run_on(cpus.first, || ours::send(to, prebuilt, count))??;
    let received = peer.received()?;
    finished(
        meter,
        received,
        prebuilt.total(count),
        prebuilt.bytes(count),
    )
}

/// Something else moves `count` messages.
///
/// # Errors
/// When one is lost, doubled, changed or out of order, or a process cannot be started or pinned.
pub(crate) fn carried(
    cpus: CpuPair,
    carrier: Carrier,
    message_bytes: usize,
    payloads: &Payloads,
    count: u64,
) -> Result<Sample, BenchError> {
    let meeting = Meeting::arrange()?;
    let course = Course {
        carrier,
        message_bytes,
        count,
        meeting: meeting.name().to_owned(),
        tallied: None,
    };
    let mut peer = Peer::start(&words(&course, cpus.second))?;
    let meter = run_on(cpus.first, || one_way::send(&course, &meeting, payloads))??;
    let received = peer.received()?;
    let bytes = count * message_bytes as u64;
    let sample = finished(meter, received, payloads.total(count), bytes)?;
    // Each message is copied into the segment, and summed where it lies there.
    Ok(sample.copying((carrier == Carrier::Link).then_some(bytes)))
}

fn finished(
    meter: socket::Meter,
    received: Received,
    expected: Total,
    bytes: u64,
) -> Result<Sample, BenchError> {
    let spent = meter.spent() + received.spent;
    let wall = Duration::try_from_secs_f64(received.ended_s - meter.began_s)?;
    received.total.require(expected)?;
    Ok(Sample::rate(bytes, wall, spent, bytes).copying(received.copied_with(meter)))
}

fn words(course: &Course, cpu: CpuId) -> Vec<String> {
    let mut words = vec![
        "receive-shared".to_owned(),
        course.carrier.to_string(),
        course.message_bytes.to_string(),
        course.count.to_string(),
        course.meeting.clone(),
        cpu.to_string(),
    ];
    words.extend(course.tallied.map(|distinct| distinct.to_string()));
    words
}

/// In the receiving process: what came over the course.
///
/// # Errors
/// When it cannot be pinned, or what comes is not what is sent.
pub(crate) fn receive(course: &Course, cpu: CpuId) -> Result<String, BenchError> {
    serve(cpu, |listener| match course.carrier {
        Carrier::Edge => ours::receive(&listener, Tally::of(course.tallied)),
        _ => one_way::receive(course),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_carrier_is_a_word_of_the_command_line() {
        for carrier in Carrier::ALL {
            assert_eq!(carrier.to_string().parse(), Ok(*carrier));
        }
        assert!("pigeon".parse::<Carrier>().is_err());
    }
}
