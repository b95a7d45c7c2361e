//! One-row batches there over one edge, and back over another, to another process.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use ringway::edge::remote::{RemoteOptions, RemoteStats};
use ringway::edge::{Ending, Popped, Receiver, RejectReason, Sender};
use ringway::element::StreamElement;

use crate::edge::shared;
use crate::edge::socket::{Idle, OwnLinks};
use crate::error::BenchError;

use super::road::Road;

/// Different batches, which go round.
const BATCHES: usize = 64;

/// What carries the two edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remote {
    /// A socket, whose links are turned on every look.
    Socket,
    /// Shared memory, on which the edges work by themselves.
    Shared,
}

/// The two edges, seen from where batches are made.
pub(crate) struct Edges {
    remote: Remote,
    links: OwnLinks,
    out: Sender<RecordBatch>,
    back: Receiver<RecordBatch>,
    batches: Vec<RecordBatch>,
    refused: Option<StreamElement<RecordBatch>>,
    /// The number of the next that is back.
    next_back: i64,
    /// When the first was back; the first frames go with the beginning of the connection.
    first: Option<RemoteStats>,
}

impl Remote {
    /// What edges are opened with.
    pub(crate) fn options(self) -> RemoteOptions {
        match self {
            Self::Socket => RemoteOptions::default(),
            Self::Shared => shared::options(),
        }
    }

    /// One turn of the links, as what they carry needs it.
    ///
    /// # Errors
    /// When nothing has happened for a minute.
    pub(crate) fn turn(
        self,
        links: &mut OwnLinks,
        has_worked: bool,
        limit: impl FnOnce() -> Option<Duration>,
    ) -> Result<(), BenchError> {
        match self {
            Self::Socket => links.turn_until(has_worked, limit),
            Self::Shared => links.rest_until(has_worked, limit),
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Socket => "socket",
            Self::Shared => "shared",
        })
    }
}

impl FromStr for Remote {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = [Self::Socket, Self::Shared].into_iter();
        let found = all.find(|remote| remote.to_string() == text);
        found.ok_or_else(|| format!("no edge is carried by {text:?}"))
    }
}

impl Edges {
    /// Edges to whoever listens there, and back.
    ///
    /// # Errors
    /// When the connection is refused.
    pub(crate) fn open(remote: Remote, to: SocketAddr, idle: Idle) -> Result<Self, BenchError> {
        let links = OwnLinks::new(idle)?;
        let out = links.sender(to, remote.options())?;
        let back = links.receiver_over(to, remote.options())?;
        Self::of(remote, links, out, back)
    }

    /// The same two edges, seen from who listens.
    ///
    /// # Errors
    /// When no connection can be accepted.
    pub(crate) fn accept(
        remote: Remote,
        listener: &TcpListener,
        idle: Idle,
    ) -> Result<Self, BenchError> {
        let links = OwnLinks::new(idle)?;
        let back = links.receiver(listener, remote.options())?;
        let out = links.sender_over(listener, remote.options())?;
        Self::of(remote, links, out, back)
    }

    fn of(
        remote: Remote,
        links: OwnLinks,
        out: Sender<RecordBatch>,
        back: Receiver<RecordBatch>,
    ) -> Result<Self, BenchError> {
        Ok(Self {
            remote,
            links,
            out,
            back,
            batches: batches()?,
            refused: None,
            next_back: 0,
            first: None,
        })
    }

    /// How long the frame of a batch is.
    pub(crate) fn frame_bytes(&self) -> usize {
        let stats = self.out.remote_stats().unwrap_or_default();
        let first = self.first.unwrap_or_default();
        let frames = (stats.frames - first.frames).max(1);
        let bytes = (stats.wire_bytes - first.wire_bytes) / frames;
        bytes.max(16) as usize
    }

    /// Ends both edges in order.
    ///
    /// # Errors
    /// When the peer is gone.
    pub(crate) fn finish(mut self) -> Result<(), BenchError> {
        finish(self.out)?;
        while !matches!(self.back.try_pop(), Popped::Ended(_)) {
            let limit = || Some(Duration::from_secs(1));
            self.remote.turn(&mut self.links, false, limit)?;
        }
        // The links look after a sender for as long as there is a receiver.
        drop(self.back);
        self.links.finish()
    }
}

impl Road for Edges {
    fn send(&mut self, number: i64) -> Result<bool, BenchError> {
        let batch = || StreamElement::Data(self.batches[number as usize % BATCHES].clone());
        let element = self.refused.take().unwrap_or_else(batch);
        self.refused = push(&mut self.out, element)?;
        Ok(self.refused.is_none())
    }

    fn take_back(&mut self) -> Result<Option<i64>, BenchError> {
        match self.back.try_pop() {
            Popped::Element(StreamElement::Data(batch)) => {
                if self.first.is_none() {
                    self.first = self.out.remote_stats();
                }
                let number = self.next_back;
                self.next_back += 1;
                let value = batch.column(1).as_primitive::<Int64Type>().value(0);
                if value as usize != number as usize % BATCHES {
                    return Err(BenchError::new(format!(
                        "another batch than {number} is back"
                    )));
                }
                Ok(Some(number))
            }
            Popped::Empty => Ok(None),
            other => Err(BenchError::new(format!("a batch was sent: {other:?}"))),
        }
    }

    fn wait(
        &mut self,
        has_worked: bool,
        limit: &dyn Fn() -> Option<Duration>,
    ) -> Result<(), BenchError> {
        self.remote.turn(&mut self.links, has_worked, limit)
    }
}

/// Sends batches back until there are no more, and returns how many there were.
///
/// # Errors
/// When the peer is gone.
pub(crate) fn echo(remote: Remote, listener: &TcpListener, idle: Idle) -> Result<u64, BenchError> {
    let limit = || Some(Duration::from_secs(1));
    let mut links = OwnLinks::new(idle)?;
    let mut there = links.receiver(listener, remote.options())?;
    let mut back = links.sender_over(listener, remote.options())?;
    let mut count = 0;
    loop {
        let mut has_worked = false;
        loop {
            match there.try_pop() {
                Popped::Element(element) if element.is_data() => {
                    let mut refused = push(&mut back, element)?;
                    while let Some(element) = refused {
                        remote.turn(&mut links, false, limit)?;
                        refused = push(&mut back, element)?;
                    }
                    count += 1;
                    has_worked = true;
                }
                Popped::Empty => break,
                Popped::Ended(Ending::End) => {
                    finish(back)?;
                    drop(there);
                    links.finish()?;
                    return Ok(count);
                }
                other => return Err(BenchError::new(format!("a batch was sent: {other:?}"))),
            }
        }
        remote.turn(&mut links, has_worked, limit)?;
    }
}

/// Pushes an element, and gives it back where there is no room.
fn push(
    to: &mut Sender<RecordBatch>,
    element: StreamElement<RecordBatch>,
) -> Result<Option<StreamElement<RecordBatch>>, BenchError> {
    match to.try_push(element) {
        Ok(()) => Ok(None),
        Err(rejected) if rejected.reason == RejectReason::Full => Ok(Some(rejected.element)),
        Err(rejected) => Err(BenchError::new(rejected.reason.to_string())),
    }
}

/// # Errors
/// When another batch than was sent came back.
pub(crate) fn require_answer(
    number: u64,
    sent: &RecordBatch,
    answer: Option<&RecordBatch>,
) -> Result<(), BenchError> {
    match answer {
        Some(answer) if answer.columns() == sent.columns() => Ok(()),
        _ => Err(BenchError::new(format!("another answer to {number} came"))),
    }
}

/// Different batches of one row.
///
/// # Errors
/// When they cannot be made, which nothing is known to lead to.
pub(crate) fn batches() -> Result<Vec<RecordBatch>, BenchError> {
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("event_time", DataType::Int64, true),
        Field::new("value", DataType::Int64, false),
    ]));
    let column = |number| Arc::new(Int64Array::from_value(number, 1)) as ArrayRef;
    let batch = |number| RecordBatch::try_new(Arc::clone(&schema), vec![column(number); 2]);
    let batches: Result<Vec<_>, _> = (0..BATCHES as i64).map(batch).collect();
    Ok(batches?)
}

fn finish(sender: Sender<RecordBatch>) -> Result<(), BenchError> {
    let finished = sender.finish();
    finished.map_err(|reason| BenchError::new(reason.to_string()))
}
