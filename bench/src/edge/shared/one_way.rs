//! Messages one way, over whatever carries them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use ringway_shm::Bell;

use crate::edge::socket::{Idle, Meter, Received, Total, sum_of_words};
use crate::error::BenchError;
use crate::shared::linked::{link_in, link_out};
use crate::shared::meeting::{Meeting, join, pass, take};
use crate::shared::memfd::{RingIn, RingOut};
use crate::shared::{WayIn, WayOut};

use super::Carrier;
use super::payload::{Payloads, add};

/// Bytes of a read of a Unix stream at most.
const READ_BYTES: usize = 1 << 20;

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
        Carrier::UnixStream => {
            let meter = Meter::start();
            for message in payloads.messages(course.count) {
                stream.write_all(message)?;
            }
            Ok(meter)
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
        Carrier::UnixStream => read_all(join(&course.meeting)?, course),
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

fn read_all(mut stream: UnixStream, course: &Course) -> Result<Received, BenchError> {
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
        total.rows += (whole / bytes) as u64;
        for message in buffer[..whole].chunks_exact(bytes) {
            total.sum = total.sum.wrapping_add(sum_of_words(message));
        }
        buffer.copy_within(whole..held, 0);
        held -= whole;
    }
}
