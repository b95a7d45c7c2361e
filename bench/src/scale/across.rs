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

use super::work::{Outputs, Subtasks, Turn, receive as receive_all, warm_batches};

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

/// Turns the links until all edges are open: a peer that waits for an answer gives up after a
/// while, so with many edges nothing else is done meanwhile.
///
/// # Errors
/// When nothing has happened for a minute.
pub(crate) fn settle<E>(
    links: &mut OwnLinks,
    ends: &mut [E],
    is_open: impl Fn(&mut E) -> bool,
) -> Result<(), BenchError> {
    while !ends.iter_mut().all(&is_open) {
        links.turn(false)?;
    }
    Ok(())
}

/// Moves `count` batches, after some for which no time is taken.
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
    let warm = subtasks.warm_batches();
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
            side.links.turn(true)?;
        }
        settle(&mut side.links, &mut edges, |edge| {
            edge.poll_transport().is_some()
        })?;
        let mut outputs = Outputs::new(edges, subtasks, load)?;
        let mut batches = prebuilt.batches(warm + count);
        outputs.emit(&mut batches, warm, &mut side)?;
        let meter = Meter::start();
        outputs.emit(&mut batches, count, &mut side)?;
        outputs.finish()?;
        side.links.finish()?;
        Ok::<_, BenchError>(meter)
    })??;
    let received: Received = peer.received()?;
    let spent = meter.spent() + received.spent;
    let wall = Duration::try_from_secs_f64(received.ended_s - meter.began_s)?;
    let expected = prebuilt.total(warm + count).in_any_order();
    received.total.in_any_order().require(expected)?;
    let bytes = prebuilt.bytes(warm + count) - prebuilt.bytes(warm);
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
        side.links.turn(true)?;
    }
    settle(&mut side.links, &mut edges, |edge| {
        edge.poll_transport().is_some()
    })?;
    let mut meter = Meter::start();
    let is_warm = || meter = Meter::start();
    let (total, ended_s) = receive_all(edges, &mut side, warm_batches(count), is_warm)?;
    let received = Received {
        ended_s,
        ..meter.received(total)
    };
    side.links.finish()?;
    Ok(received)
}
