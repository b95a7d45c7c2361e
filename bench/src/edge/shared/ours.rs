//! The edge over shared memory. Its ends work on the segment by themselves; the links of the
//! thread, over whose connection they have met, are turned now and then.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use ringway::clock::Monotonic;
use ringway::edge::remote::RemoteOptions;
use ringway::edge::shared::Sharing;
use ringway::edge::{Ending, Popped, RejectReason};
use ringway::element::StreamElement;

use crate::edge::socket::{Idle, Meter, OwnLinks, Prebuilt, Received, STEP_ELEMENTS, Tally};
use crate::error::BenchError;

/// An edge that fails where it can't be over shared memory.
pub(crate) fn options() -> RemoteOptions {
    RemoteOptions::default().sharing(Sharing::Require)
}

/// Sends `count` batches and the end of the stream.
///
/// # Errors
/// When the peer is gone.
pub(super) fn send(to: SocketAddr, prebuilt: &Prebuilt, count: u64) -> Result<Meter, BenchError> {
    let mut links = OwnLinks::new(Idle::Adaptive)?;
    let mut sender = links.sender(to, options())?;
    while sender.poll_transport().is_none() {
        links.rest(false)?;
    }
    let meter = Meter::start();
    // What the clock says does not matter here.
    sender.set_origin(Monotonic(Duration::from_secs(1)));
    let mut unflushed = 0;
    for batch in prebuilt.batches(count) {
        let mut element = StreamElement::Data(batch);
        while let Err(rejected) = sender.try_push_quiet(element) {
            if rejected.reason != RejectReason::Full {
                return Err(BenchError::new(rejected.reason.to_string()));
            }
            sender.flush();
            links.rest(unflushed > 0)?;
            unflushed = 0;
            element = rejected.element;
        }
        unflushed += 1;
        if unflushed == STEP_ELEMENTS {
            unflushed = 0;
            sender.flush();
        }
    }
    let finished = sender.finish();
    finished.map_err(|reason| BenchError::new(reason.to_string()))?;
    links.finish()?;
    Ok(meter)
}

/// Receives to the end.
///
/// # Errors
/// When the peer is gone, or fails.
pub(super) fn receive(listener: &TcpListener, mut tally: Tally) -> Result<Received, BenchError> {
    let mut links = OwnLinks::new(Idle::Adaptive)?;
    let mut receiver = links.receiver(listener, options())?;
    let meter = Meter::start();
    loop {
        match receiver.try_pop() {
            Popped::Element(StreamElement::Data(batch)) => {
                tally.add(&batch);
                links.rest(true)?;
            }
            Popped::Empty => links.rest(false)?,
            Popped::Ended(Ending::End) => {
                let received = meter.received(tally.total());
                // The links look after the sender for as long as there is a receiver.
                drop(receiver);
                links.finish()?;
                return Ok(received);
            }
            other => return Err(BenchError::new(format!("a batch was sent: {other:?}"))),
        }
    }
}
