//! Memory against the number of edges: what each takes while nothing has gone over it, and what
//! after something has.
//!
//! What is measured is what is resident, of processes that do nothing else, around so many edges
//! that are opened beside a first one. The processes are started anew for each measurement, so
//! that no edge finds memory which another has given back.

mod local;
mod remote;
mod resident;

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use ringway::placement::CpuId;

use crate::case::{Case, median};
use crate::contest::Harness;
use crate::edge::socket::{Peer, serve};
use crate::error::BenchError;
use crate::latency::Remote;
use crate::scale::SEGMENT_BYTES;
use crate::transport::Transport;

use remote::HeldRemotely;

const EDGES: [usize; 4] = [1, 10, 100, 1_000];
const SMOKE_EDGES: [usize; 2] = [1, 10];

/// Fewer edges than this take too few pages to tell what each takes.
const TOLD_FROM_EDGES: usize = 100;
/// The same of what a local edge takes beside its slots, which are most of it.
const TOLD_BESIDE_SLOTS_FROM_EDGES: usize = 1_000;

/// Runs of a case at most: what they give hardly differs.
const RUNS_MAX: usize = 3;

/// Bytes that an idle end of a remote edge may take.
const IDLE_END_BYTES_MAX: f64 = 16_384.0;
/// Bytes that an idle local edge may take beside its slots.
const IDLE_LOCAL_BYTES_MAX: f64 = 2_048.0;

/// What a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Local edges.
    Local,
    /// The ends that receive.
    Receivers(Remote),
    /// The ends that send.
    Senders(Remote),
}

/// Measures all cases of `memory` over a transport.
///
/// # Errors
/// When a batch is lost, or a process cannot be started or measured.
pub(crate) fn measure(harness: &mut Harness, transport: Transport) -> Result<(), BenchError> {
    let smoke = harness.settings.smoke;
    let edges: &[usize] = if smoke { &SMOKE_EDGES } else { &EDGES };
    for &edges in edges {
        let names = Names { transport, edges };
        if !Names::WHAT
            .iter()
            .any(|what| harness.wants(&names.of(what)))
        {
            continue;
        }
        harness.progress.say(names.of("edges"));
        let runs = harness.settings.runs.min(RUNS_MAX);
        let cases = match transport {
            Transport::Local => of_local(harness, names, runs)?,
            Transport::Shared => of_remote(harness, names, Remote::Shared, runs)?,
            Transport::Socket => of_remote(harness, names, Remote::Socket, runs)?,
        };
        for mut case in cases {
            let few = "memory comes in pages, and these are too few edges to tell";
            case.noisy = (edges < TOLD_FROM_EDGES).then(|| few.to_owned());
            if harness.wants(&case.name) {
                harness.add(case);
            }
        }
    }
    Ok(())
}

/// The names of what is measured of so many edges.
#[derive(Clone, Copy)]
struct Names {
    transport: Transport,
    edges: usize,
}

impl Names {
    const WHAT: [&str; 3] = ["edges", "used", "segment"];

    fn of(self, what: &str) -> String {
        format!("memory/{}/{what}/{}", self.transport.name(), self.edges)
    }
}

fn of_local(harness: &Harness, names: Names, runs: usize) -> Result<Vec<Case>, BenchError> {
    let (mut beside, mut idle, mut used) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        let mut holds = start(harness, Held::Local, names.edges, None)?;
        let held: local::HeldLocally = holds.received()?;
        beside.push(held.beside_slots);
        idle.push(held.idle);
        used.push(held.used);
    }
    let mut cases = Vec::new();
    if names.edges >= TOLD_BESIDE_SLOTS_FROM_EDGES || harness.settings.smoke {
        let (name, unit) = (names.of("edges"), "bytes beside slots");
        let limit = IDLE_LOCAL_BYTES_MAX;
        cases.push(Case::against_limit(&name, unit, &beside, limit));
    }
    let name = names.of("used");
    cases.push(beside_idle(&name, "bytes an edge", &used, &idle));
    Ok(cases)
}

fn of_remote(
    harness: &Harness,
    names: Names,
    remote: Remote,
    runs: usize,
) -> Result<Vec<Case>, BenchError> {
    let (mut idle, mut used, mut segments) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        let mut receivers = start(harness, Held::Receivers(remote), names.edges, None)?;
        let to = Some(receivers.address);
        let mut senders = start(harness, Held::Senders(remote), names.edges, to)?;
        let ends: [HeldRemotely; 2] = [senders.received()?, receivers.received()?];
        let larger = |of: fn(&HeldRemotely) -> f64| ends.iter().map(of).fold(0.0, f64::max);
        idle.push(larger(|end| end.idle.own_bytes));
        used.push(larger(|end| end.used.own_bytes));
        segments.push(ends.iter().map(|end| end.used.shared_bytes).sum());
    }
    let each = |values: Vec<f64>| -> Vec<f64> {
        let each = values.into_iter().map(|bytes| bytes / names.edges as f64);
        each.collect()
    };
    let (idle, used, segments) = (each(idle), each(used), each(segments));
    let unit = "bytes of the larger end";
    let mut cases = vec![
        Case::against_limit(&names.of("edges"), unit, &idle, IDLE_END_BYTES_MAX),
        beside_idle(&names.of("used"), unit, &used, &idle),
    ];
    if remote == Remote::Shared {
        let arena = SEGMENT_BYTES as f64;
        let name = names.of("segment");
        cases.push(Case {
            baseline_name: "arena".to_owned(),
            runs_baseline: vec![arena; segments.len()],
            ..Case::against_limit(&name, "bytes of both ends", &segments, arena)
        });
    }
    Ok(cases)
}

/// What used edges take beside what idle ones do.
fn beside_idle(name: &str, unit: &str, used: &[f64], idle: &[f64]) -> Case {
    // A few edges may find room in pages that are there.
    let idle: Vec<f64> = idle.iter().map(|bytes| bytes.max(1.0)).collect();
    Case {
        baseline_name: "idle".to_owned(),
        runs_baseline: idle.clone(),
        ..Case::against_limit(name, unit, used, median(&idle))
    }
}

fn start(
    harness: &Harness,
    held: Held,
    edges: usize,
    to: Option<SocketAddr>,
) -> Result<Peer, BenchError> {
    let cpus = harness.settings.cpus;
    let cpu = if to.is_none() {
        cpus.second
    } else {
        cpus.first
    };
    let mut words = vec![
        "hold".to_owned(),
        held.to_string(),
        edges.to_string(),
        cpu.to_string(),
    ];
    words.extend(to.map(|to| to.to_string()));
    Peer::start(&words)
}

/// In another process: holds edges, and says what they take. Those that send do so to `to`.
///
/// # Errors
/// When a batch is lost, or the memory can't be read.
pub(crate) fn hold(
    held: Held,
    edges: usize,
    to: Option<SocketAddr>,
    cpu: CpuId,
) -> Result<String, BenchError> {
    match (held, to) {
        (Held::Local, _) => serve(cpu, |_| local::hold(edges)),
        (Held::Receivers(remote), _) => serve(cpu, |listener| {
            remote::hold_receivers(&listener, remote, edges)
        }),
        (Held::Senders(remote), Some(to)) => {
            serve(cpu, |_| remote::hold_senders(to, remote, edges))
        }
        (Held::Senders(_), None) => Err(BenchError::new("nobody to send to was named")),
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Receivers(remote) => write!(f, "receivers:{remote}"),
            Self::Senders(remote) => write!(f, "senders:{remote}"),
        }
    }
}

impl FromStr for Held {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "local" => Ok(Self::Local),
            Some(("receivers", remote)) => Ok(Self::Receivers(remote.parse()?)),
            Some(("senders", remote)) => Ok(Self::Senders(remote.parse()?)),
            _ => Err(format!("nothing to hold is called {text:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_process_is_told_what_to_hold_in_one_word() {
        let remotes = [Remote::Socket, Remote::Shared];
        let ends = remotes.map(|remote| [Held::Receivers(remote), Held::Senders(remote)]);
        for held in ends.into_iter().flatten().chain([Held::Local]) {
            assert_eq!(held.to_string().parse(), Ok(held));
        }
        assert!("receivers:pigeon".parse::<Held>().is_err());
    }
}
