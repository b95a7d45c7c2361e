//! One-row batches there over one edge, and back over another, each when the one before is back.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use ringway::edge::remote::RemoteOptions;
use ringway::edge::{Ending, Popped, Sender};
use ringway::element::StreamElement;

use crate::edge::shared::options;
use crate::edge::socket::{Idle, OwnLinks};
use crate::error::BenchError;

use super::Times;

/// Different batches, which go round.
const BATCHES: usize = 64;

/// What carries both edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Shared,
    Socket,
}

impl Over {
    fn options(self) -> RemoteOptions {
        match self {
            Self::Shared => options(),
            Self::Socket => RemoteOptions::default(),
        }
    }

    /// Goes on with what the links have to do: those of sockets move everything, and those of
    /// shared memory hardly anything.
    fn rest(self, links: &mut OwnLinks, has_worked: bool) -> Result<(), BenchError> {
        match self {
            Self::Shared => links.rest(has_worked),
            Self::Socket => links.turn(has_worked),
        }
    }
}

/// Sends batches, and waits for each to come back.
///
/// # Errors
/// When the peer is gone, or another batch comes back.
pub(crate) fn ask(to: SocketAddr, over: Over, idle: Idle, count: u64) -> Result<Times, BenchError> {
    let mut links = OwnLinks::new(idle)?;
    let mut out = links.sender(to, over.options())?;
    let mut back = links.receiver_over(to, over.options())?;
    let batches = batches()?;
    let mut times = Times::begin();
    for (number, batch) in (0..count).zip(batches.iter().cycle()) {
        push(&mut out, batch.clone())?;
        let answer = loop {
            match back.try_pop() {
                Popped::Element(StreamElement::Data(batch)) => break batch,
                Popped::Empty => over.rest(&mut links, false)?,
                other => return Err(BenchError::new(format!("a batch was sent: {other:?}"))),
            }
        };
        over.rest(&mut links, true)?;
        times.is_back();
        require_answer(number, batch, Some(&answer))?;
    }
    let finished = out.finish();
    finished.map_err(|reason| BenchError::new(reason.to_string()))?;
    while !matches!(back.try_pop(), Popped::Ended(_)) {
        over.rest(&mut links, false)?;
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
pub(crate) fn answer(listener: &TcpListener, over: Over, idle: Idle) -> Result<u64, BenchError> {
    let mut links = OwnLinks::new(idle)?;
    let mut there = links.receiver(listener, over.options())?;
    let mut back = links.sender_over(listener, over.options())?;
    let mut count = 0;
    loop {
        match there.try_pop() {
            Popped::Element(StreamElement::Data(batch)) => {
                push(&mut back, batch)?;
                count += 1;
                over.rest(&mut links, true)?;
            }
            Popped::Empty => over.rest(&mut links, false)?,
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

/// # Errors
/// When something else came back than was sent.
pub(crate) fn require_answer(
    number: u64,
    sent: &RecordBatch,
    answer: Option<&RecordBatch>,
) -> Result<(), BenchError> {
    let value = |batch: &RecordBatch| {
        batch
            .column(1)
            .as_primitive::<Int64Type>()
            .values()
            .to_vec()
    };
    match answer {
        Some(answer) if value(answer) == value(sent) => Ok(()),
        _ => Err(BenchError::new(format!("another answer to {number} came"))),
    }
}

/// Different batches of one row.
///
/// # Errors
/// None that is known of.
pub(crate) fn batches() -> Result<Vec<RecordBatch>, BenchError> {
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
