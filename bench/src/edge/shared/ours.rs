//! The edge over shared memory. Its ends work on the segment by themselves; the links of the
//! thread, over whose connection they have met, are turned now and then.

use std::net::{SocketAddr, TcpListener};

use ringway::edge::remote::RemoteOptions;
use ringway::edge::shared::Sharing;

use crate::edge::batches;
use crate::edge::socket::{Idle, Meter, OwnLinks, Prebuilt, Received, Tally};
use crate::error::BenchError;

/// An edge that fails where it can't be over shared memory.
pub(crate) fn options() -> RemoteOptions {
    RemoteOptions::default().sharing(Sharing::Require)
}

/// Sends `count` batches and the end of the stream, from when the memory is shared.
///
/// # Errors
/// When the peer is gone.
pub(super) fn send(to: SocketAddr, prebuilt: &Prebuilt, count: u64) -> Result<Meter, BenchError> {
    let mut links = OwnLinks::new(Idle::Adaptive)?;
    let mut sender = links.sender(to, options())?;
    while sender.poll_transport().is_none() {
        links.rest(false)?;
    }
    batches::send(links, sender, OwnLinks::rest, prebuilt, count)
}

/// Receives to the end.
///
/// # Errors
/// When the peer is gone, or fails.
pub(super) fn receive(listener: &TcpListener, tally: Tally) -> Result<Received, BenchError> {
    let links = OwnLinks::new(Idle::Adaptive)?;
    let receiver = links.receiver(listener, options())?;
    batches::receive(links, receiver, OwnLinks::rest, tally)
}
