//! Latency against the load that is offered: a one-row batch there and back, at rates that rise
//! until one can't be held.
//!
//! The time of each counts from when it was due. A rate is saturated where less than 95 % of it
//! comes back in every run: what is measured there is a queue that grows for as long as the run lasts, so no
//! further rate is offered, and a run ends soon after the time that it should take.

use std::cell::RefCell;
use std::time::Duration;

use crate::contest::{Contest, Harness, Measure, Sample};
use crate::cpus::CpuPair;
use crate::edge::socket::Idle;
use crate::error::BenchError;
use crate::latency::schedule::Schedule;
use crate::latency::{self, Carrier, Run, shared};
use crate::transport::Transport;

/// Round trips a second that are offered, one after the other.
const RATES: [u64; 12] = [
    1_000, 5_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000,
    10_000_000, 20_000_000,
];
/// How many of them where only the results are checked, and round trips at each.
const SMOKE_RATES: usize = 2;
const SMOKE_TRIPS: u64 = 50;

/// Of the rate that is offered, less than this coming back is saturation.
const HELD_SHARE_MIN: f64 = 0.95;

/// A run goes on for this share of the time that it should take, and this, at most.
const LONGER_SHARE: f64 = 0.2;
const LONGER: Duration = Duration::from_millis(20);

/// Measures all cases of `load` over a transport.
///
/// # Errors
/// When a batch is lost or changed, or a party cannot be started or pinned.
pub(crate) fn measure(harness: &mut Harness, transport: Transport) -> Result<(), BenchError> {
    for idle in Idle::ALL {
        let rates = if harness.settings.smoke {
            &RATES[..SMOKE_RATES]
        } else {
            &RATES
        };
        for &rate in rates {
            let name = format!("load/{}/{}/{rate}", transport.name(), idle.name());
            if !harness.wants(&name) {
                continue;
            }
            let held = offer(harness, name, transport, idle, rate)?;
            // A run that is only checked is too short to say what can be held.
            if held < HELD_SHARE_MIN && !harness.settings.smoke {
                break;
            }
        }
    }
    Ok(())
}

/// Measures one rate, and returns which share of it came back in the best of the runs.
fn offer(
    harness: &mut Harness,
    name: String,
    transport: Transport,
    idle: Idle,
    rate: u64,
) -> Result<f64, BenchError> {
    let settings = harness.settings;
    let cpus = settings.cpus;
    let held = RefCell::new(Vec::new());
    let frame_bytes = match transport {
        Transport::Socket => latency::frame_bytes_of(cpus)?,
        Transport::Local | Transport::Shared => 0,
    };
    let ours = |count| {
        let run = ours(cpus, transport, idle, schedule(rate, count))?;
        held.borrow_mut().push(run.held_share);
        Ok(sample(run))
    };
    let baseline = |count| {
        let schedule = schedule(rate, count);
        baseline(cpus, transport, idle, frame_bytes, schedule).map(sample)
    };
    harness.measure_counted(Contest {
        name,
        unit: "us",
        measure: Measure::Latency,
        baseline_name: match transport {
            Transport::Local => "rtrb",
            Transport::Shared => "memfd ring",
            Transport::Socket => "raw tcp",
        },
        count: match settings.smoke {
            true => SMOKE_TRIPS,
            false => ((rate as f64 * settings.seconds) as u64).max(SMOKE_TRIPS),
        },
        ours: Box::new(ours),
        baseline: Box::new(baseline),
    })?;
    let held = held.into_inner();
    // A pair that is not wanted says nothing, and a run that others disturbed little.
    let most = held.iter().copied().reduce(f64::max);
    Ok(most.unwrap_or(1.0))
}

fn ours(
    cpus: CpuPair,
    transport: Transport,
    idle: Idle,
    schedule: Schedule,
) -> Result<Run, BenchError> {
    match transport {
        Transport::Local => latency::run_locally(cpus, Carrier::Edge(idle), schedule),
        Transport::Shared => shared::run_at_a_rate(cpus, shared::Echo::Row(idle), schedule),
        Transport::Socket => latency::run(cpus, latency::Echo::Edge(idle), schedule),
    }
}

fn baseline(
    cpus: CpuPair,
    transport: Transport,
    idle: Idle,
    frame_bytes: usize,
    schedule: Schedule,
) -> Result<Run, BenchError> {
    match transport {
        Transport::Local => latency::run_locally(cpus, Carrier::Rtrb, schedule),
        Transport::Shared => shared::run_at_a_rate(cpus, shared::Echo::Memfd, schedule),
        Transport::Socket => {
            let polls = idle != Idle::Park;
            let raw = latency::Echo::Raw {
                polls,
                frame_bytes,
                way: latency::Way::Same,
            };
            latency::run(cpus, raw, schedule)
        }
    }
}

fn schedule(rate: u64, count: u64) -> Schedule {
    let wanted_s = count as f64 / rate as f64;
    let longer = LONGER + Duration::from_secs_f64(wanted_s * LONGER_SHARE);
    Schedule::new(rate, count).at_most(longer)
}

fn sample(run: Run) -> Sample {
    let p50 = run.latencies.percentile_us(50.0);
    let sample = Sample::latency(p50, run.wall, run.spent);
    sample.with_latencies(run.latencies).holding(run.held_share)
}
