//! Messages one way, over whatever carries them.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use ringway_shm::Bell;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use crate::edge::socket::{Idle, Meter, Received, Total};
use crate::error::BenchError;
#[cfg(feature = "aeron")]
use crate::shared::aeron;
use crate::shared::linked::{link_in, link_out};
use crate::shared::meeting::{Meeting, join, pass, take};
use crate::shared::memfd::{RingIn, RingOut};
use crate::shared::{WayIn, WayOut};

use super::Carrier;
use super::payload::{Payloads, add};

/// Bytes of a read of a Unix stream or a pipe at most.
const READ_BYTES: usize = 1 << 20;

/// The number of a stream of Aeron.
#[cfg(feature = "aeron")]
const AERON_STREAM: i32 = 1;

/// Bytes that a pipe holds.
const PIPE_BYTES: usize = 1 << 20;

/// What goes where.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(crate) carrier: Carrier,
    /// Of each message.
    pub(crate) message_bytes: usize,
    pub(crate) count: u64,
    /// Where the processes meet.
    pub(crate) meeting: String,
    /// Of batches whose checksums are compared, how many there are.
    pub(crate) tallied: Option<u64>,
}

/// Sends `count` messages, and stays until the other process has them.
///
/// # Errors
/// When the peer is gone.
pub(super) fn send(
    course: &Course,
    meeting: &Meeting,
    payloads: &Payloads,
) -> Result<Meter, BenchError> {
    let mut stream = meeting.accept()?;
    let bytes = course.message_bytes;
    match course.carrier {
        Carrier::Link => {
            let way = link_in(&stream, &Bell::descriptor()?, bytes)?;
            push_all(way, &mut stream, payloads, course.count)
        }
        Carrier::Memfd(copied) => {
            let way = RingIn::make(bytes, copied)?;
            pass(&stream, &[way.descriptor()])?;
            push_all(way, &mut stream, payloads, course.count)
        }
        #[cfg(feature = "iceoryx2")]
        Carrier::Iceoryx => {
            let services = crate::shared::iceoryx::Services::new()?;
            let way = services.publisher(&course.meeting, bytes)?;
            push_all(way, &mut stream, payloads, course.count)
        }
        #[cfg(feature = "aeron")]
        Carrier::Aeron => {
            let driver = aeron::Driver::start(&mut stream)?;
            let way = driver.client().publication(AERON_STREAM)?.connected();
            push_all(way, &mut stream, payloads, course.count)
        }
        Carrier::UnixStream => write_all(stream, payloads, course.count),
        Carrier::Pipe => {
            let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
            // As much as anybody may have; with less it is slower.
            fcntl_setpipe_size(&writer, PIPE_BYTES)?;
            pass(&stream, &[reader.as_fd()])?;
            drop(reader);
            write_all(File::from(writer), payloads, course.count)
        }
        Carrier::Edge => Err(BenchError::new("an edge carries batches")),
    }
}

fn push_all(
    mut way: impl WayIn,
    stream: &mut UnixStream,
    payloads: &Payloads,
    count: u64,
) -> Result<Meter, BenchError> {
    let meter = Meter::start();
    for message in payloads.messages(count) {
        way.push(message)?;
    }
    way.publish();
    // It closes the stream when it has everything; until then it may need this end.
    stream.read_exact(&mut [0]).unwrap_err();
    Ok(meter)
}

/// A message a write; the end is the end of the stream.
fn write_all(mut stream: impl Write, payloads: &Payloads, count: u64) -> Result<Meter, BenchError> {
    let meter = Meter::start();
    for message in payloads.messages(count) {
        stream.write_all(message)?;
    }
    Ok(meter)
}

/// In the receiving process: takes what [`send`] sends.
///
/// # Errors
/// When the peer is gone.
pub(super) fn receive(course: &Course) -> Result<Received, BenchError> {
    let bytes = course.message_bytes;
    match course.carrier {
        Carrier::Link => {
            let stream = join(&course.meeting)?;
            let way = link_out(&stream, &Bell::descriptor()?, bytes, Idle::Spin)?;
            pop_all(way, course.count)
        }
        Carrier::Memfd(_) => {
            let stream = join(&course.meeting)?;
            let [memory] = take(&stream)?;
            pop_all(RingOut::of(memory, bytes)?, course.count)
        }
        #[cfg(feature = "iceoryx2")]
        Carrier::Iceoryx => {
            let services = crate::shared::iceoryx::Services::new()?;
            let way = services.subscriber(&course.meeting, bytes)?;
            // The publisher comes when there is someone to publish for.
            let _stream = join(&course.meeting)?;
            pop_all(way, course.count)
        }
        #[cfg(feature = "aeron")]
        Carrier::Aeron => {
            let mut stream = join(&course.meeting)?;
            let client = aeron::Client::join(&mut stream)?;
            let mut way = client.subscription(AERON_STREAM)?;
            let meter = Meter::start();
            let mut total = Total::default();
            while total.rows < course.count {
                if !way.pop_some(|message| add(&mut total, message))? {
                    way.wait()?;
                }
            }
            Ok(meter.received(total))
        }
        Carrier::UnixStream => read_all(join(&course.meeting)?, course),
        Carrier::Pipe => {
            let [reader] = take(&join(&course.meeting)?)?;
            read_all(File::from(reader), course)
        }
        Carrier::Edge => Err(BenchError::new("an edge carries batches")),
    }
}

fn pop_all(mut way: impl WayOut, count: u64) -> Result<Received, BenchError> {
    let meter = Meter::start();
    let mut total = Total::default();
    while total.rows < count {
        if !way.pop(|message| add(&mut total, message))? {
            way.wait()?;
        }
    }
    Ok(meter.received(total))
}

fn read_all(mut stream: impl Read, course: &Course) -> Result<Received, BenchError> {
    let meter = Meter::start();
    let bytes = course.message_bytes;
    let mut buffer = vec![0; READ_BYTES.next_multiple_of(bytes.max(1))];
    let (mut held, mut total) = (0, Total::default());
    loop {
        let read = stream.read(&mut buffer[held..])?;
        if read == 0 {
            return Ok(meter.received(total));
        }
        held += read;
        let whole = held / bytes * bytes;
        let messages = buffer[..whole].chunks_exact(bytes);
        messages.for_each(|message| add(&mut total, message));
        buffer.copy_within(whole..held, 0);
        held -= whole;
    }
}
