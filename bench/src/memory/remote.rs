//! Ends of edges to another process.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use arrow::array::RecordBatch;
use ringway::edge::{Popped, Receiver, RejectReason, Sender};
use ringway::element::StreamElement;
use serde::{Deserialize, Serialize};

use crate::edge::socket::{Idle, Kind, Load, OwnLinks, Total};
use crate::error::BenchError;
use crate::latency::Remote;
use crate::scale::{raise_descriptor_limit, small_segments};

use super::resident::Resident;

/// What goes over each edge before it counts as used: a quarter of a megabyte.
const LOAD: Load = Load {
    kind: Kind::Int64,
    rows: 256,
};
const BATCHES: u64 = 64;

/// What so many ends take together.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct HeldRemotely {
    pub(super) idle: Resident,
    pub(super) used: Resident,
}

/// Opens ends that receive, and takes what comes.
///
/// # Errors
/// When a batch is lost, or the memory can't be read.
pub(super) fn hold_receivers(
    listener: &TcpListener,
    remote: Remote,
    edges: usize,
) -> Result<HeldRemotely, BenchError> {
    let (control, _) = listener.accept()?;
    let mut party = Party::new(remote, control)?;
    let expected = LOAD.prebuilt().total(BATCHES);
    let open = |links: &OwnLinks| links.receiver(listener, small_segments(remote));
    let is_open = |edge: &mut Receiver<RecordBatch>| edge.poll_transport().is_some();
    party.hold(edges, open, is_open, |party, edges| {
        let mut totals = vec![Total::default(); edges.len()];
        for round in 1..=BATCHES {
            let rows = expected.rows / BATCHES * round;
            while totals.iter().any(|total| total.rows < rows) {
                take(edges, &mut totals)?;
                party.turn(false)?;
            }
            party.meet()?;
        }
        totals.iter().try_for_each(|total| total.require(expected))
    })
}

fn take(edges: &mut [Receiver<RecordBatch>], totals: &mut [Total]) -> Result<(), BenchError> {
    for (edge, total) in edges.iter_mut().zip(totals) {
        match edge.try_pop() {
            Popped::Element(StreamElement::Data(batch)) => total.add(&batch),
            Popped::Empty => {}
            other => return Err(BenchError::new(format!("a batch was sent: {other:?}"))),
        }
    }
    Ok(())
}

/// Opens ends that send, and sends.
///
/// # Errors
/// When the peer is gone, or the memory can't be read.
pub(super) fn hold_senders(
    to: SocketAddr,
    remote: Remote,
    edges: usize,
) -> Result<HeldRemotely, BenchError> {
    let mut party = Party::new(remote, TcpStream::connect(to)?)?;
    let prebuilt = LOAD.prebuilt();
    let open = |links: &OwnLinks| links.sender(to, small_segments(remote));
    let is_open = |edge: &mut Sender<RecordBatch>| edge.poll_transport().is_some();
    party.hold(edges, open, is_open, |party, edges| {
        for batch in prebuilt.batches(BATCHES) {
            for edge in edges.iter_mut() {
                party.push(edge, batch.clone())?;
            }
            // The next when all have this one: what is measured is what is kept, and not what
            // was under way.
            party.meet()?;
        }
        Ok(())
    })
}

/// One of the two processes.
struct Party {
    remote: Remote,
    links: OwnLinks,
    /// By which each waits for the other.
    control: TcpStream,
}

impl Party {
    fn new(remote: Remote, control: TcpStream) -> Result<Self, BenchError> {
        raise_descriptor_limit()?;
        control.set_nodelay(true)?;
        control.set_nonblocking(true)?;
        Ok(Self {
            remote,
            links: OwnLinks::new(Idle::Adaptive)?,
            control,
        })
    }

    /// Opens so many edges beside a first one, and uses them; measures after either.
    fn hold<E>(
        &mut self,
        edges: usize,
        open: impl Fn(&OwnLinks) -> Result<E, BenchError>,
        is_open: impl Fn(&mut E) -> bool,
        work: impl FnOnce(&mut Self, &mut [E]) -> Result<(), BenchError>,
    ) -> Result<HeldRemotely, BenchError> {
        let mut ends = Vec::with_capacity(edges + 1);
        ends.push(open(&self.links)?);
        self.settle(&mut ends, &is_open)?;
        let before = Resident::now()?;
        self.meet()?;
        for _ in 0..edges {
            ends.push(open(&self.links)?);
        }
        self.settle(&mut ends, &is_open)?;
        let idle = Resident::now()? - before;
        self.meet()?;
        work(self, &mut ends)?;
        self.meet()?;
        let used = Resident::now()? - before;
        self.meet()?;
        Ok(HeldRemotely { idle, used })
    }

    /// Turns until all edges are open, on both sides.
    fn settle<E>(
        &mut self,
        ends: &mut [E],
        is_open: impl Fn(&mut E) -> bool,
    ) -> Result<(), BenchError> {
        while !ends.iter_mut().all(&is_open) {
            self.turn(false)?;
        }
        self.meet()
    }

    /// Waits until the other process is here as well.
    fn meet(&mut self) -> Result<(), BenchError> {
        self.control.write_all(&[0])?;
        loop {
            match self.control.read(&mut [0]) {
                Ok(0) => return Err(BenchError::new("the other process has ended")),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.turn(false)?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn push(
        &mut self,
        edge: &mut Sender<RecordBatch>,
        batch: RecordBatch,
    ) -> Result<(), BenchError> {
        let mut element = StreamElement::Data(batch);
        while let Err(rejected) = edge.try_push(element) {
            if rejected.reason != RejectReason::Full {
                return Err(BenchError::new(rejected.reason.to_string()));
            }
            self.turn(false)?;
            element = rejected.element;
        }
        Ok(())
    }

    /// Nothing rings for what comes over the control connection, so it sleeps shortly.
    fn turn(&mut self, has_worked: bool) -> Result<(), BenchError> {
        let limit = || Some(Duration::from_millis(1));
        self.remote.turn(&mut self.links, has_worked, limit)
    }
}
