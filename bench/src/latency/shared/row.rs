//! One-row batches there over one edge, and back over another.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use ringway::edge::{Ending, Popped, Sender};
use ringway::element::StreamElement;

use crate::edge::shared::options;
use crate::edge::socket::{Idle, OwnLinks};
use crate::error::BenchError;

use super::Times;

/// Different batches, which go round.
const BATCHES: usize = 64;

/// Sends batches, and waits for each to come back.
///
/// # Errors
/// When the peer is gone, or another batch comes back.
pub(super) fn ask(to: SocketAddr, idle: Idle, count: u64) -> Result<Times, BenchError> {
    let mut links = OwnLinks::new(idle)?;
    let mut out = links.sender(to, options())?;
    let mut back = links.receiver_over(to, options())?;
    let batches = batches()?;
    let mut times = Times::begin();
    for (number, batch) in (0..count).zip(batches.iter().cycle()) {
        push(&mut out, batch.clone())?;
        let answer = loop {
            match back.try_pop() {
                Popped::Element(StreamElement::Data(batch)) => break batch,
                Popped::Empty => links.rest(false)?,
                other => return Err(BenchError::new(format!("a batch was sent: {other:?}"))),
            }
        };
        links.rest(true)?;
        times.is_back();
        let value = answer.column(1).as_primitive::<Int64Type>().value(0);
        if value as u64 != number % BATCHES as u64 {
            return Err(BenchError::new(format!("another answer to {number} came")));
        }
    }
    let finished = out.finish();
    finished.map_err(|reason| BenchError::new(reason.to_string()))?;
    while !matches!(back.try_pop(), Popped::Ended(_)) {
        links.rest(false)?;
    }
    // The links look after a sender for as long as there is a receiver.
    drop(back);
    links.finish()?;
    Ok(times)
}

/// Sends batches back until there are no more, and returns how many there were.
///
/// # Errors
/// When the peer is gone.
pub(super) fn answer(listener: &TcpListener, idle: Idle) -> Result<u64, BenchError> {
    let mut links = OwnLinks::new(idle)?;
    let mut there = links.receiver(listener, options())?;
    let mut back = links.sender_over(listener, options())?;
    let mut count = 0;
    loop {
        match there.try_pop() {
            Popped::Element(StreamElement::Data(batch)) => {
                push(&mut back, batch)?;
                count += 1;
                links.rest(true)?;
            }
            Popped::Empty => links.rest(false)?,
            Popped::Ended(Ending::End) => {
                let finished = back.finish();
                finished.map_err(|reason| BenchError::new(reason.to_string()))?;
                drop(there);
                links.finish()?;
                return Ok(count);
            }
            other => return Err(BenchError::new(format!("a batch was sent: {other:?}"))),
        }
    }
}

fn batches() -> Result<Vec<RecordBatch>, BenchError> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("event_time", DataType::Int64, true),
        Field::new("value", DataType::Int64, false),
    ]));
    let column = |number| Arc::new(Int64Array::from_value(number, 1)) as ArrayRef;
    let batch = |number| RecordBatch::try_new(Arc::clone(&schema), vec![column(number); 2]);
    let batches: Result<Vec<_>, _> = (0..BATCHES as i64).map(batch).collect();
    Ok(batches?)
}

fn push(to: &mut Sender<RecordBatch>, batch: RecordBatch) -> Result<(), BenchError> {
    let pushed = to.try_push(StreamElement::Data(batch));
    pushed.map_err(|rejected| BenchError::new(rejected.reason.to_string()))
}
