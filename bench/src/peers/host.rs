//! Between two processes of a host: messages through our link and through what else there is.
//!
//! The link is that under an edge over shared memory; a message is copied in, and summed where it
//! lies. Round trips are a closed loop, as in `latency --transport shared`.

use crate::contest::{Contest, Harness, Measure};
use crate::edge::shared::{Carrier, Payloads, carried};
use crate::edge::socket::Idle;
use crate::error::BenchError;
use crate::latency::SMOKE_TRIPS;
use crate::latency::shared::{Echo, sample};

/// Messages of a run that is only checked.
const SMOKE_MESSAGES: u64 = 300;

/// Bytes of a message, as the cases have them.
const MESSAGES: [(&str, usize); 3] = [("64B", 64), ("16KiB", 16 << 10), ("256KiB", 256 << 10)];

const CARRIERS: &[(&str, Carrier)] = &[
    #[cfg(feature = "iceoryx2")]
    (ICEORYX2, Carrier::Iceoryx),
    #[cfg(feature = "aeron")]
    (AERON, Carrier::Aeron),
    ("unix stream", Carrier::UnixStream),
    ("pipe", Carrier::Pipe),
];

/// What never sleeps, and what does at once.
const POLLED: &[(&str, Echo)] = &[
    #[cfg(feature = "iceoryx2")]
    (ICEORYX2, Echo::Iceoryx),
    #[cfg(feature = "aeron")]
    (AERON, Echo::Aeron),
];
const ASLEEP: &[(&str, Echo)] = &[("unix stream", Echo::UnixStream), ("pipe", Echo::Pipe)];

const ICEORYX2: &str = "iceoryx2";
const AERON: &str = "aeron";

/// Measures all cases of `peers/host`.
///
/// # Errors
/// When a message is lost, doubled, changed or out of order, or a process cannot be started or
/// pinned.
pub(super) fn measure(harness: &mut Harness) -> Result<(), BenchError> {
    for (load, message_bytes) in MESSAGES {
        stream(harness, &format!("peers/host/{load}"), message_bytes)?;
    }
    let spin = "peers/host/rtt/spin";
    leave_out_unbuilt(harness, spin);
    round_trips(harness, spin, Echo::Link(Idle::Spin), POLLED)?;
    round_trips(
        harness,
        "peers/host/rtt/park",
        Echo::Link(Idle::Park),
        ASLEEP,
    )
}

fn leave_out_unbuilt(harness: &mut Harness, name: &str) {
    if cfg!(not(feature = "iceoryx2")) {
        harness.leave_out_unbuilt(name, ICEORYX2, ICEORYX2);
    }
    if cfg!(not(feature = "aeron")) {
        let why = "it is not built in; it is built from source, with CMake 3.30 or later and \
                   libclang: build with --features aeron to have it";
        harness.leave_out(name, AERON, why);
    }
}

fn stream(harness: &mut Harness, name: &str, message_bytes: usize) -> Result<(), BenchError> {
    if !harness.wants(name) {
        return Ok(());
    }
    leave_out_unbuilt(harness, name);
    let cpus = harness.settings.cpus;
    let payloads = &Payloads::of(message_bytes);
    for &(baseline_name, baseline) in CARRIERS {
        let run = move |carrier, count| carried(cpus, carrier, message_bytes, payloads, count);
        harness.measure(Contest {
            name: name.to_owned(),
            unit: "bytes/s",
            measure: Measure::Rate,
            baseline_name,
            count: SMOKE_MESSAGES,
            ours: Box::new(move |count| run(Carrier::Link, count)),
            baseline: Box::new(move |count| run(baseline, count)),
        })?;
    }
    Ok(())
}

fn round_trips(
    harness: &mut Harness,
    name: &str,
    ours: Echo,
    baselines: &[(&'static str, Echo)],
) -> Result<(), BenchError> {
    let cpus = harness.settings.cpus;
    for &(baseline_name, baseline) in baselines {
        harness.measure(Contest {
            name: name.to_owned(),
            unit: "us",
            measure: Measure::Latency,
            baseline_name,
            count: SMOKE_TRIPS,
            ours: Box::new(move |count| sample(cpus, ours, count, 50.0)),
            baseline: Box::new(move |count| sample(cpus, baseline, count, 50.0)),
        })?;
    }
    Ok(())
}
