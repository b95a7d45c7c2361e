//! One-row batches there over one edge, and back over another.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use ringway::edge::remote::RemoteOptions;
use ringway::edge::{Ending, Popped, RejectReason, Sender};
use ringway::element::StreamElement;

use crate::edge::socket::{Idle, OwnLinks};
use crate::error::BenchError;

use super::schedule::{OpenLoop, Schedule};
use crate::latencies::Latencies;

/// Sends batches as they are due, and takes them back.
///
/// # Errors
/// When the peer is gone, or another batch comes back.
pub(super) fn send(
    to: SocketAddr,
    idle: Idle,
    schedule: Schedule,
) -> Result<(Latencies, Duration, usize), BenchError> {
    let mut links = OwnLinks::new(idle)?;
    let mut out = links.sender(to, RemoteOptions::default())?;
    let mut back = links.receiver_over(to, RemoteOptions::default())?;
    let schema = Arc::new(Schema::new(vec![
        Field::new("event_time", DataType::Int64, true),
        Field::new("value", DataType::Int64, false),
    ]));
    let column = |number| Arc::new(Int64Array::from_value(number, 1)) as ArrayRef;
    let mut trips = OpenLoop::begin(schedule);
    let mut frames = None;
    while !trips.is_done() {
        let mut has_worked = false;
        while let Some(number) = trips.next_due() {
            let batch = RecordBatch::try_new(schema.clone(), vec![column(number); 2])?;
            push(&mut links, &mut out, batch)?;
            has_worked = true;
        }
        while let Popped::Element(StreamElement::Data(batch)) = back.try_pop() {
            trips.is_back(batch.column(1).as_primitive::<Int64Type>().value(0))?;
            has_worked = true;
        }
        if frames.is_none() {
            let stats = out.remote_stats().unwrap_or_default();
            frames = (stats.frames > 0).then_some(stats);
        }
        links.turn_until(has_worked, || trips.may_sleep())?;
    }
    let elapsed = trips.elapsed();
    let stats = out.remote_stats().unwrap_or_default();
    // The first frames go with the beginning of the connection.
    let first = frames.unwrap_or_default();
    let bytes = (stats.wire_bytes - first.wire_bytes) / (stats.frames - first.frames).max(1);
    let finished = out.finish();
    finished.map_err(|reason| BenchError::new(reason.to_string()))?;
    while !matches!(back.try_pop(), Popped::Ended(_)) {
        links.turn(false)?;
    }
    links.finish()?;
    Ok((trips.into_latencies(), elapsed, bytes.max(16) as usize))
}

/// Sends batches back until there are no more, and returns how many there were.
///
/// # Errors
/// When the peer is gone.
pub(super) fn echo(listener: &TcpListener, idle: Idle) -> Result<u64, BenchError> {
    let mut links = OwnLinks::new(idle)?;
    let mut there = links.receiver(listener, RemoteOptions::default())?;
    let mut back = links.sender_over(listener, RemoteOptions::default())?;
    let mut count = 0;
    loop {
        let mut has_worked = false;
        loop {
            match there.try_pop() {
                Popped::Element(StreamElement::Data(batch)) => {
                    push(&mut links, &mut back, batch)?;
                    count += 1;
                    has_worked = true;
                }
                Popped::Empty => break,
                Popped::Ended(Ending::End) => {
                    let finished = back.finish();
                    finished.map_err(|reason| BenchError::new(reason.to_string()))?;
                    links.finish()?;
                    return Ok(count);
                }
                other => return Err(BenchError::new(format!("a batch was sent: {other:?}"))),
            }
        }
        links.turn(has_worked)?;
    }
}

/// Pushes a batch, however many wait: after a stall of the machine that may be more than an edge
/// holds.
fn push(
    links: &mut OwnLinks,
    to: &mut Sender<RecordBatch>,
    batch: RecordBatch,
) -> Result<(), BenchError> {
    let mut element = StreamElement::Data(batch);
    while let Err(rejected) = to.try_push(element) {
        if rejected.reason != RejectReason::Full {
            return Err(BenchError::new(rejected.reason.to_string()));
        }
        links.turn(true)?;
        element = rejected.element;
    }
    Ok(())
}
