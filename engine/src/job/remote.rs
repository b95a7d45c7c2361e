//! What a job asks of whoever opens edges between its processes.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use ringway_netio::driver::Driver;
use ringway_shm::Bell;

use crate::data_plane::TransportChoice;
use crate::edge::EdgeOptions;
use crate::edge::remote::LinksHandle;

use super::payload::{Codec, Erased, PayloadType};

/// A half of an edge whose other half is in another process.
pub struct WantedHalf {
    /// The number of the edge in the job, the same in both processes.
    pub edge: u64,
    /// Which half.
    pub side: RemoteSide,
    /// The process that has the other half.
    pub peer: usize,
    /// Name and bounds.
    pub options: EdgeOptions,
    /// What it carries.
    pub payload: PayloadType,
    /// How that goes over a wire.
    pub codec: Codec,
    /// What is to carry it.
    pub transport: TransportChoice,
    /// The worker of this process that it belongs to.
    pub worker: usize,
    /// What wakes that.
    pub bell: Bell,
    /// Hands connections to that, if workers drive them.
    pub links: Option<LinksHandle>,
}

/// A half of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteSide {
    /// A `Sender<B>`.
    Sender,
    /// A `Receiver<B>`.
    Receiver,
}

/// What all edges between the processes of one run have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunIdentity {
    /// Random, the same in all processes of the run.
    pub job: u128,
    /// The attempt of the job.
    pub attempt: u32,
    /// The number of this process.
    pub process: usize,
    /// Where each process listens for data edges.
    pub addresses: Vec<String>,
}

/// Makes the driver of the worker on whose thread it is called.
pub type MakeDriver = Arc<dyn Fn() -> io::Result<Box<dyn Driver>> + Send + Sync>;

/// Opens edges between the processes of a job.
pub trait RemoteEdges: Send {
    /// The port at which this process listens for edges; 0 where it needs none. `None` where
    /// that of process 0, which this is, is used for them: see
    /// [`RemoteEdges::take_listener`].
    fn port(&self) -> Option<u16>;

    /// Gives process 0 the socket at which it has waited for the others, who are there. From
    /// now on only edges come to it.
    fn take_listener(&mut self, listener: TcpListener) {
        drop(listener);
    }

    /// Opens halves of edges, and gives them in the same order, each as the `Sender<B>` or
    /// `Receiver<B>` of its payload.
    ///
    /// Both processes of an edge open it, in any order. This does not wait for the other one:
    /// [`RemoteEdges::poll_opened`] tells when that is there.
    ///
    /// # Errors
    /// When an edge cannot be opened.
    fn open(
        &mut self,
        run: &RunIdentity,
        wanted: Vec<WantedHalf>,
    ) -> Result<Vec<Erased>, RemoteError>;

    /// Whether everything that was opened has its other half. It is asked again and again while
    /// the workers run, and never blocks.
    ///
    /// # Errors
    /// When another half does not come.
    fn poll_opened(&mut self) -> Result<bool, RemoteError> {
        Ok(true)
    }

    /// How workers make drivers, if the edges are connections that workers drive.
    fn drivers(&self) -> Option<MakeDriver> {
        None
    }
}

/// Why edges to other processes cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("edges to other processes cannot be opened: {0}")]
pub struct RemoteError(pub String);
