//! ZeroMQ, by libzmq: every batch as an Arrow stream of its own, with its schema, in a message.
//!
//! Each process has the thread of libzmq that moves the bytes beside the one that makes and reads
//! the messages, on the same CPU. A socket holds as many messages as an edge does elements.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use zmq::{Context, Message, Socket, SocketType};

use crate::error::BenchError;
use crate::latency::ours::require_answer;
use crate::latency::road::Times;

use super::framed::{decoded, encoded};
use super::load::Prebuilt;
use super::peer::{Meter, Received};
use super::tally::Tally;

/// Messages that a socket holds.
const MESSAGES_MAX: i32 = 1024;

/// Bytes of the port that the sockets meet at.
const PORT_BYTES: usize = size_of::<u16>();

/// How long a socket waits for a message before the peer is taken to be gone.
const STUCK_AFTER_MS: i32 = 60_000;

/// Sends `count` batches, and an empty message as the end.
///
/// # Errors
/// When the peer is gone.
pub(super) fn send(to: SocketAddr, prebuilt: &Prebuilt, count: u64) -> Result<Meter, BenchError> {
    let mut meeting = TcpStream::connect(to)?;
    let socket = connected(&mut meeting, SocketType::PUSH)?;
    let meter = Meter::start();
    for batch in prebuilt.batches(count) {
        socket.send(encoded(&batch, Vec::new())?, 0)?;
    }
    socket.send(Message::new(), 0)?;
    // It closes the stream when it has everything.
    meeting.read_exact(&mut [0]).unwrap_err();
    Ok(meter)
}

/// Receives to the end.
///
/// # Errors
/// When the peer is gone, or sends something else.
pub(super) fn receive(listener: &TcpListener, mut tally: Tally) -> Result<Received, BenchError> {
    let (mut meeting, _) = listener.accept()?;
    let socket = bound(&mut meeting, SocketType::PULL)?;
    let meter = Meter::start();
    while let Some(batch) = batch_of(&socket.recv_msg(0)?)? {
        tally.add(&batch);
    }
    Ok(meter.received(tally.total()))
}

/// Sends batches, one after the other, and waits for each to come back.
///
/// # Errors
/// When the peer is gone, or another batch comes back.
pub(crate) fn ask(to: SocketAddr, asked: &[RecordBatch], count: u64) -> Result<Times, BenchError> {
    let mut meeting = TcpStream::connect(to)?;
    let socket = connected(&mut meeting, SocketType::PAIR)?;
    let mut times = Times::begin();
    for (number, batch) in (0..count).zip(asked.iter().cycle()) {
        socket.send(encoded(batch, Vec::new())?, 0)?;
        let answer = batch_of(&socket.recv_msg(0)?)?;
        times.is_back();
        require_answer(number, batch, answer.as_ref())?;
    }
    socket.send(Message::new(), 0)?;
    meeting.read_exact(&mut [0]).unwrap_err();
    Ok(times)
}

/// Sends batches back until there are no more, and returns how many there were.
///
/// # Errors
/// When the peer is gone, or sends something else.
pub(crate) fn answer(listener: &TcpListener) -> Result<u64, BenchError> {
    let (mut meeting, _) = listener.accept()?;
    let socket = bound(&mut meeting, SocketType::PAIR)?;
    let mut count = 0;
    while let Some(batch) = batch_of(&socket.recv_msg(0)?)? {
        socket.send(encoded(&batch, Vec::new())?, 0)?;
        count += 1;
    }
    Ok(count)
}

/// A socket of the other process, which tells where it is.
fn connected(meeting: &mut TcpStream, kind: SocketType) -> Result<Socket, BenchError> {
    let mut port = [0; PORT_BYTES];
    meeting.read_exact(&mut port)?;
    let socket = socket(kind)?;
    socket.connect(&format!("tcp://127.0.0.1:{}", u16::from_le_bytes(port)))?;
    Ok(socket)
}

/// A socket at a port that is told the other process.
fn bound(meeting: &mut TcpStream, kind: SocketType) -> Result<Socket, BenchError> {
    let socket = socket(kind)?;
    socket.bind("tcp://127.0.0.1:*")?;
    let endpoint = socket.get_last_endpoint()?;
    let endpoint = endpoint.map_err(|_| BenchError::new("an endpoint that is no text"))?;
    let port = endpoint.rsplit_once(':').map_or("", |(_, port)| port);
    meeting.write_all(&port.parse::<u16>()?.to_le_bytes())?;
    Ok(socket)
}

fn socket(kind: SocketType) -> Result<Socket, BenchError> {
    let socket = Context::new().socket(kind)?;
    socket.set_sndhwm(MESSAGES_MAX)?;
    socket.set_rcvhwm(MESSAGES_MAX)?;
    socket.set_sndtimeo(STUCK_AFTER_MS)?;
    socket.set_rcvtimeo(STUCK_AFTER_MS)?;
    Ok(socket)
}

/// The batch of a message; none where it is empty. It is copied to where it is aligned.
fn batch_of(message: &Message) -> Result<Option<RecordBatch>, BenchError> {
    if message.is_empty() {
        return Ok(None);
    }
    decoded(Buffer::from(&message[..])).map(Some)
}
