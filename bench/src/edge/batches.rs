//! Prebuilt batches over an edge between two processes, in steps as a task does them.

use std::time::Duration;

use arrow::array::RecordBatch;
use ringway::clock::Monotonic;
use ringway::edge::{Ending, Popped, Receiver, RejectReason, Sender, Transport};
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
    let copied_bytes = copied_in_sending(&mut links, &mut sender, turn, count)?;
    let finished = sender.finish();
    finished.map_err(|reason| BenchError::new(reason.to_string()))?;
    links.finish()?;
    Ok(meter.copying(copied_bytes))
}

/// Bytes that the sender has copied, when `count` batches are on their way: a sender that has
/// finished can't be asked.
fn copied_in_sending(
    links: &mut OwnLinks,
    sender: &mut Sender<RecordBatch>,
    turn: impl Fn(&mut OwnLinks, bool) -> Result<(), BenchError>,
    count: u64,
) -> Result<u64, BenchError> {
    let mut has_worked = true;
    loop {
        sender.flush();
        let stats = sender.remote_stats().unwrap_or_default();
        let is_sent = sender.transport() == Transport::Shared || stats.frames >= count;
        if is_sent || sender.is_closed() {
            return Ok(stats.copied_bytes);
        }
        turn(links, has_worked)?;
        has_worked = false;
    }
}

/// Bytes that have been copied for what `receiver` got. What lies in a segment was copied into it
/// by the sender.
fn copied_in_receiving(receiver: &Receiver<RecordBatch>) -> u64 {
    let stats = receiver.remote_stats().unwrap_or_default();
    match receiver.transport() {
        Transport::Shared => stats.wire_bytes + stats.copied_bytes,
        _ => stats.copied_bytes,
    }
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
                    let copied_bytes = copied_in_receiving(&receiver);
                    let received = meter.copying(copied_bytes).received(tally.total());
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
