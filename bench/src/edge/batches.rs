//! Prebuilt batches over an edge between two processes, in steps as a task does them.

use std::time::Duration;

use arrow::array::RecordBatch;
use ringway::clock::Monotonic;
use ringway::edge::{Ending, Popped, Receiver, RejectReason, Sender};
use ringway::element::StreamElement;

use crate::error::BenchError;

use super::socket::{Meter, OwnLinks, Prebuilt, Received, Tally};

/// Elements that are moved in a step at most.
const STEP_ELEMENTS: usize = 256;

/// Sends `count` batches and the end of the stream. `turn` looks after the links behind each step,
/// and is told whether the step did anything.
///
/// # Errors
/// When the peer is gone.
pub(super) fn send(
    mut links: OwnLinks,
    mut sender: Sender<RecordBatch>,
    turn: impl Fn(&mut OwnLinks, bool) -> Result<(), BenchError>,
    prebuilt: &Prebuilt,
    count: u64,
) -> Result<Meter, BenchError> {
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
            turn(&mut links, unflushed > 0)?;
            unflushed = 0;
            element = rejected.element;
        }
        unflushed += 1;
        if unflushed == STEP_ELEMENTS {
            unflushed = 0;
            sender.flush();
            turn(&mut links, true)?;
        }
    }
    let finished = sender.finish();
    finished.map_err(|reason| BenchError::new(reason.to_string()))?;
    links.finish()?;
    Ok(meter)
}

/// Receives to the end, and counts what comes; `turn` is as for [`send`].
///
/// # Errors
/// When the peer is gone, or fails.
pub(super) fn receive(
    mut links: OwnLinks,
    mut receiver: Receiver<RecordBatch>,
    turn: impl Fn(&mut OwnLinks, bool) -> Result<(), BenchError>,
    mut tally: Tally,
) -> Result<Received, BenchError> {
    let meter = Meter::start();
    loop {
        let mut has_worked = false;
        for _ in 0..STEP_ELEMENTS {
            match receiver.try_pop() {
                Popped::Element(StreamElement::Data(batch)) => {
                    tally.add(&batch);
                    has_worked = true;
                }
                Popped::Empty => break,
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
        turn(&mut links, has_worked)?;
    }
}
