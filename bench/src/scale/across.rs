//! Edges between two processes, over shared memory or sockets.

use std::net::TcpListener;
use std::time::Duration;

use ringway::edge::remote::RemoteOptions;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::contest::Sample;
use crate::cpus::CpuPair;
use crate::edge::socket::{Idle, Load, Meter, OwnLinks, Peer, Prebuilt, Received};
use crate::error::BenchError;
use crate::latency::Remote;
use crate::pinned::run_on;

use super::work::{Subtasks, Turn, receive as receive_all, send};

/// Bytes of the segment of an edge over shared memory: of a thousand edges a quarter of a
/// gigabyte.
pub(crate) const SEGMENT_BYTES: usize = 256 << 10;

/// The links of a thread, turned as what they carry needs it.
struct Side {
    remote: Remote,
    links: OwnLinks,
}

impl Turn for Side {
    fn turn(&mut self, has_worked: bool) -> Result<(), BenchError> {
        let limit = || Some(Duration::from_secs(1));
        self.remote.turn(&mut self.links, has_worked, limit)
    }
}

/// What edges of a remote kind are opened with where there are many.
pub(crate) fn small_segments(remote: Remote) -> RemoteOptions {
    let mut options = remote.options();
    options.shared.segment_bytes = Some(SEGMENT_BYTES);
    options
}

/// Lets this process have as many descriptors as it may.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn raise_descriptor_limit() -> Result<(), BenchError> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}

/// Moves `count` batches.
///
/// # Errors
/// When a row is lost, doubled or changed, or a process cannot be started or pinned.
pub(super) fn run(
    cpus: CpuPair,
    remote: Remote,
    subtasks: Subtasks,
    load: Load,
    prebuilt: &Prebuilt,
    count: u64,
) -> Result<Sample, BenchError> {
    raise_descriptor_limit()?;
    let words = [
        "receive-many".to_owned(),
        remote.to_string(),
        subtasks.edges().to_string(),
        cpus.second.to_string(),
    ];
    let mut peer = Peer::start(&words)?;
    let to = peer.address;
    let meter = run_on(cpus.first, || {
        let links = OwnLinks::new(Idle::Adaptive)?;
        let mut side = Side { remote, links };
        let mut edges = Vec::new();
        for _ in 0..subtasks.edges() {
            edges.push(side.links.sender(to, small_segments(remote))?);
        }
        while edges.iter_mut().any(|edge| edge.poll_transport().is_none()) {
            side.turn(false)?;
        }
        let meter = Meter::start();
        send(edges, subtasks, load, prebuilt, count, &mut side)?;
        side.links.finish()?;
        Ok::<_, BenchError>(meter)
    })??;
    let received: Received = peer.received()?;
    let spent = meter.spent() + received.spent;
    let wall = Duration::try_from_secs_f64(received.ended_s - meter.began_s)?;
    received.total.require(prebuilt.total(count))?;
    let bytes = prebuilt.bytes(count);
    Ok(Sample::rate(bytes, wall, spent, bytes))
}

/// In the other process: takes what comes over so many edges.
///
/// # Errors
/// When the peer is gone, or fails.
pub(super) fn receive(
    listener: &TcpListener,
    remote: Remote,
    count: usize,
) -> Result<Received, BenchError> {
    raise_descriptor_limit()?;
    let links = OwnLinks::new(Idle::Adaptive)?;
    let mut side = Side { remote, links };
    let mut edges = Vec::new();
    for _ in 0..count {
        edges.push(side.links.receiver(listener, small_segments(remote))?);
    }
    let meter = Meter::start();
    let total = receive_all(edges, &mut side)?;
    let received = meter.received(total);
    side.links.finish()?;
    Ok(received)
}
